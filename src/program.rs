//! The program: arguments in, exit code out. It is a part of the library, because a future is compiled where it is polled, and
//! what the library polls as well would be compiled twice.

use std::future::{self, Future};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;

use signalbox_agent::signed::Allowed;
use signalbox_signing::Signers;
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::AdminError;
use crate::admin::signatures::Review;
use crate::audit::chain::hex;
use crate::cli::{
    AdminArgs, AuditCommand, BackupArgs, Cli, Command, DemoArgs, HealthArgs, ImportCommand, InviteArgs, ListUsersArgs,
    MigrateArgs, ServeArgs, SqliteToPostgresArgs, UserArgs, UserCommand, VerifyArgs,
};
use crate::demo::Demo;
use crate::health::{self, HealthError};
use crate::startup::Application;
use crate::store::AccountPatch;
use crate::{admin, http, observe, startup};

/// The exit code for an invalid value or an unreachable database.
const EXIT_MISCONFIGURED: u8 = 2;

/// The exit code for an audit log that is not intact, and for an unhealthy service.
const EXIT_BROKEN: u8 = 1;

/// Reads the arguments of this process and does what they say.
pub fn main() -> ExitCode {
    // Databases, their copies and keys: no file that is written here is for other users, whatever the shell's umask is.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    // Set before anything opens a TLS connection: several crates could bring a provider, so one is named.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return failed(&first_paragraph(&error.to_string()), EXIT_MISCONFIGURED),
        Err(help) => {
            _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    if let Err(unknown) = Cli::check_environment() {
        return failed(&unknown.to_string(), EXIT_MISCONFIGURED);
    }
    match startup::in_system(run(cli)).unwrap_or_else(|error| Err(error.into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&said_once(&error), exit_code(&error)),
    }
}

/// Prints what is wrong, in one line.
fn failed(problem: &str, code: u8) -> ExitCode {
    _ = writeln!(std::io::stderr(), "signalbox: {}", problem.replace('\n', " "));
    ExitCode::from(code)
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let is_unwell = error.downcast_ref::<HealthError>().is_some_and(|error| !error.is_misconfigured());
    match error.downcast_ref() {
        Some(AdminError::AuditBroken(_) | AdminError::Forged(_)) => EXIT_BROKEN,
        _ if is_unwell => EXIT_BROKEN,
        _ => EXIT_MISCONFIGURED,
    }
}

/// An error and its causes, without those that the previous text contains.
fn said_once(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .map(ToString::to_string)
        .fold(error.to_string(), |told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") })
}

/// The parser's message without its hints.
fn first_paragraph(message: &str) -> String {
    let lines = message.lines().take_while(|line| !line.is_empty()).map(str::trim);
    lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        None => serve(cli.serve).await,
        Some(Command::Serve(args)) => serve(*args).await,
        Some(Command::Demo(args)) => show(*args).await,
        Some(Command::Health(args)) => ask(args).await,
        Some(Command::Openapi) => say(&format!("{:#}", http::openapi::document())),
        Some(Command::Backup(args)) => backup(args).await,
        Some(Command::Migrate(args)) => migrate(args).await,
        Some(Command::Import(ImportCommand::SqliteToPostgres(args))) => import(args).await,
        Some(Command::User(command)) => user(command).await,
        Some(Command::Audit(AuditCommand::Verify(args))) => verify_audit(args).await,
    }
}

async fn serve(args: ServeArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    let application = Application::build(args.config()).await?;
    // Before the line that says so: a script that has read it may end the service at once.
    let stop = asked_to_stop()?;
    application.introduce().await;
    say(&format!("listening on http://{}", application.address()))?;
    Ok(application.run_until_stopped(stop).await?)
}

async fn show(args: DemoArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.log, args.log_format)?;
    // Before there is data to remove: furnishing takes seconds.
    let mut stop = pin!(asked_to_stop_or_hung_up()?);
    let mut demo = Demo::start(args.listen, args.data_dir).await?;
    tokio::select! {
        greeting = demo.furnish(args.fleet) => say(&greeting?)?,
        () = stop.as_mut() => return demo.stop().await,
    }
    demo.run_until_stopped(stop).await
}

async fn ask(args: HealthArgs) -> anyhow::Result<()> {
    let url = health::ask(&args.service()?, args.question()).await?;
    say(&format!("{url} answers that all is well"))
}

async fn backup(args: BackupArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    // The first process of a container does not end by a signal that it does not handle.
    admin::backup(&args.data.config(), &args.file, asked_to_stop_or_hung_up()?).await?;
    say(&format!("wrote {}", args.file.display()))
}

async fn migrate(args: MigrateArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    let applied = admin::migrate(&args.data.config()).await?;
    applied.iter().try_for_each(|name| say(&format!("applied {name}")))?;
    say("the schema is up to date")
}

async fn import(args: SqliteToPostgresArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.log, args.log_format)?;
    let (source, target) = (args.source(), args.target());
    if args.check {
        return say(&admin::import::check(&source, &target).await?.to_string());
    }
    let imported = admin::import::run(&source, &target).await?;
    say(&imported.to_string())?;
    Ok(imported.audit().map_err(AdminError::AuditBroken)?)
}

async fn user(command: UserCommand) -> anyhow::Result<()> {
    let disabled = |is_disabled| AccountPatch { is_disabled: Some(is_disabled), ..AccountPatch::default() };
    match command {
        UserCommand::List(args) => list_users(args).await,
        UserCommand::Invite(args) => invite(args).await,
        UserCommand::Disable(args) => change_user(args, disabled(true), "is disabled").await,
        UserCommand::Enable(args) => change_user(args, disabled(false), "is enabled").await,
        UserCommand::Admin(AdminArgs { name, revoke, data }) => {
            let patch = AccountPatch { is_admin: Some(!revoke), ..AccountPatch::default() };
            let said = if revoke { "is no administrator" } else { "is an administrator" };
            change_user(UserArgs { name, data }, patch, said).await
        }
        UserCommand::ResetPassword(args) => reset_password(args).await,
        UserCommand::ResetSecondFactor(args) => reset_second_factor(args).await,
    }
}

async fn list_users(args: ListUsersArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    say(&admin::users::list(&args.data.config(), args.text).await?.to_string())
}

async fn invite(args: InviteArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    let InviteArgs { email, expires_in_hours, public_url, data } = args;
    say(&admin::users::invite(&data.config(), &public_url, email, expires_in_hours).await?)
}

async fn change_user(args: UserArgs, patch: AccountPatch, said: &str) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    let user = admin::users::change(&args.data.config(), &args.name, patch).await?;
    say(&format!("{} {said}", user.username))
}

async fn reset_password(args: UserArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    let password = admin::reset_password(&args.data.config(), &args.name).await?;
    say(&format!("new password for {}: {password}", args.name))
}

async fn reset_second_factor(args: UserArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    let removed = admin::reset_second_factor(&args.data.config(), &args.name).await?;
    let app = if removed.totp { "yes" } else { "no" };
    say(&format!("removed from {}: authenticator app: {app}, passkeys: {}", args.name, removed.passkeys))
}

async fn verify_audit(args: VerifyArgs) -> anyhow::Result<()> {
    observe::init_logs(&args.data.log, args.data.log_format)?;
    let signers = args.signatures.as_deref().map(read_signers).transpose()?;
    let allowed = Allowed::parse(&args.allow).map_err(AdminError::Allowed)?;
    let mut review = signers.as_ref().map(|signers| Review::new(signers, &allowed).strict(args.strict));
    let head = admin::verify_audit(&args.data.config(), args.expectation(), |record| {
        if let Some(review) = &mut review {
            review.take(record);
        }
    })
    .await?;
    if let Some(report) = review.map(Review::finish) {
        report.lines.iter().try_for_each(|line| say(line))?;
        if report.wrong > 0 {
            return Err(AdminError::Forged(report.wrong).into());
        }
    }
    say(&format!("audit log is whole: {} entries, last hash {}", head.seq, hex(&head.hash)))
}

fn read_signers(path: &Path) -> Result<Signers, AdminError> {
    let unreadable = |detail: String| AdminError::Signers { path: path.display().to_string(), detail };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    Signers::parse(&text).map_err(|error| unreadable(error.to_string()))
}

/// Prints a line to standard output, where people and scripts wait for it.
fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // The reader has read enough, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Resolves when the process gets a signal to stop.
fn asked_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Resolves when the process gets a signal to stop, or its terminal closes.
fn asked_to_stop_or_hung_up() -> anyhow::Result<impl Future<Output = ()>> {
    // Asked first, because a handler ends it: who started this with `nohup` wants it to outlive the terminal.
    let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
    let stop = asked_to_stop()?;
    Ok(async move {
        let hung_up = async {
            match hangup {
                Some(mut hangup) => _ = hangup.recv().await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            () = stop => {}
            () = hung_up => {}
        }
    })
}

/// Whether SIGHUP, signal 1, is ignored: the lowest bit of the kernel's mask (proc_pid_status(5)).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
