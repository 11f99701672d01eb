//! Completions and man pages, made of the definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man as Page;

use crate::cli::Cli;
use crate::error::Failure;
use crate::output::{Format, Out};

/// Print completions for a shell
///
/// For bash: signalboxctl completions bash >~/.local/share/bash-completion/completions/signalboxctl
#[derive(Debug, Args)]
pub struct Completions {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Print the man page, or write all of them to a directory
#[derive(Debug, Args)]
pub struct Man {
    /// Write a page for each command here
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

const OUT: Out = Out { format: Format::Table, colours: false, is_terminal: false };

impl Completions {
    pub fn run(self) -> Result<(), Failure> {
        // In memory first: the generator panics if nobody reads its output.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "signalboxctl", &mut script);
        OUT.raw(&script)
    }
}

impl Man {
    pub fn run(self) -> Result<(), Failure> {
        let mut command = Cli::command();
        command.build();
        let Some(directory) = self.directory else { return OUT.raw(&rendered(&command, "signalboxctl")?) };
        fs::create_dir_all(&directory)?;
        write_pages(&command, "signalboxctl", &directory)
    }
}

fn write_pages(command: &Command, name: &str, directory: &Path) -> Result<(), Failure> {
    let path = directory.join(format!("{name}.1"));
    let written = fs::write(&path, rendered(command, name)?);
    written.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, &format!("{name}-{}", subcommand.get_name()), directory)?;
    }
    Ok(())
}

fn rendered(command: &Command, name: &str) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Page::new(command.clone().display_name(name.to_owned())).render(&mut page)?;
    Ok(page)
}
