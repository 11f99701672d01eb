//! Builds the web interface and the help with Node and lists their files for `lib.rs`.
//!
//! `SIGNALBOX_WEB_DIST` names a directory with a built interface instead, for those who build it elsewhere, because the
//! machine that compiles has no Node or no network. `SIGNALBOX_WEB_DIST=none` makes a service that has the API alone.

// This is how a build script talks to cargo.
#![allow(clippy::print_stdout)]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// What the built files are made of. `node_modules` and `generated` are not: they are written by the build itself.
const SOURCES: [&str; 13] = [
    "src",
    "messages",
    "public",
    "build",
    "help",
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.ts",
    "svelte.config.js",
    "tsconfig.json",
    "../openapi.json",
    "../README.md",
];

/// The documents that the help is made of.
const DOCUMENTS: &str = "../docs";
/// The directory among them that the help leaves out.
const DECISIONS: &str = "decisions";

const NEEDS_NODE: &str = "the web interface is built with Node 20.19 or newer and npm: install them (https://nodejs.org; \
                          Debian 12 has an older one), name a built interface with SIGNALBOX_WEB_DIST=DIR, or build a \
                          service without one with SIGNALBOX_WEB_DIST=none";

/// The list of a service without an interface.
const NOTHING: &str = "/// Every file: there are none.\npub static ASSETS: [Asset; 0] = [];\n";

fn main() -> anyhow::Result<()> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    // A new document needs a line in the README.md that is among these.
    for document in fs::read_dir(DOCUMENTS).with_context(|| format!("{DOCUMENTS} cannot be read"))? {
        let document = document?;
        if document.file_name() != DECISIONS {
            println!("cargo::rerun-if-changed={}", document.path().display());
        }
    }
    println!("cargo::rerun-if-env-changed=SIGNALBOX_WEB_DIST");
    let out = PathBuf::from(env::var_os("OUT_DIR").context("cargo names no OUT_DIR")?);
    let list_file = out.join("assets.rs");
    let dist = match env::var_os("SIGNALBOX_WEB_DIST") {
        Some(none) if none == "none" => return Ok(fs::write(list_file, NOTHING)?),
        Some(built) => named(PathBuf::from(built))?,
        None => build(&out.join("dist"))?,
    };
    ensure!(dist.join("index.html").is_file(), "{} holds no index.html", dist.display());
    fs::write(list_file, list(&dist.canonicalize()?)?)?;
    Ok(())
}

/// A directory that was built elsewhere. A relative one would count from here, which is not where cargo was called.
fn named(dist: PathBuf) -> anyhow::Result<PathBuf> {
    ensure!(dist.is_absolute(), "SIGNALBOX_WEB_DIST={} must be an absolute path, or none", dist.display());
    println!("cargo::rerun-if-changed={}", dist.display());
    Ok(dist)
}

fn build(dist: &Path) -> anyhow::Result<PathBuf> {
    // Builds of one checkout into several directories share what npm installs and what is generated.
    let turn = fs::File::open("package-lock.json")?;
    turn.lock().context("package-lock.json cannot be locked")?;
    // What npm installed last is named by the copy of the lock file beside it.
    let installed = Path::new("node_modules/.installed-lock.json");
    let lock = fs::read("package-lock.json")?;
    if fs::read(installed).ok().as_ref() != Some(&lock) {
        npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"])?;
        fs::write(installed, &lock).with_context(|| format!("{} cannot be written", installed.display()))?;
    }
    let out = dist.to_str().context("OUT_DIR is not UTF-8")?;
    npm(&["run", "--silent", "build", "--", "--logLevel", "warn", "--emptyOutDir", "--outDir", out])?;
    Ok(dist.to_owned())
}

fn npm(arguments: &[&str]) -> anyhow::Result<()> {
    let Ok(output) = Command::new("npm").args(arguments).output() else { bail!(NEEDS_NODE) };
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    bail!(
        "`npm {}` failed ({}). It needs Node 20.19 or newer, web/node_modules to write to, and the network or npm's cache. \
         SIGNALBOX_WEB_DIST=DIR takes an interface that was built elsewhere, SIGNALBOX_WEB_DIST=none does without.\n{said}",
        arguments.join(" "),
        output.status
    );
}

/// Rust that names every file, sorted by path.
fn list(dist: &Path) -> anyhow::Result<String> {
    let mut paths = Vec::new();
    collect(dist, &mut paths)?;
    // As text, in which they are looked up: paths compare part by part, and put `assets/` before `assets-x`.
    paths.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    let mut code = format!("/// Every file, sorted by path.\npub static ASSETS: [Asset; {}] = [\n", paths.len());
    for path in &paths {
        let name = path.strip_prefix(dist)?.to_str().context("a file's name is not UTF-8")?;
        let [brotli, gzip] = [".br", ".gz"].map(|suffix| PathBuf::from(format!("{}{suffix}", path.display())));
        let content = if brotli.is_file() && gzip.is_file() {
            format!(
                "Compressed {{ brotli: include_bytes!({brotli:?}), gzip: include_bytes!({gzip:?}), plain: OnceLock::new() }}"
            )
        } else {
            format!("Plain(include_bytes!({path:?}))")
        };
        writeln!(code, "Asset {{ path: {name:?}, content: Content::{content} }},")?;
    }
    code.push_str("];\n");
    Ok(code)
}

fn collect(directory: &Path, into: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, into)?;
        } else if !path.extension().is_some_and(|extension| extension == "br" || extension == "gz") {
            into.push(path);
        }
    }
    Ok(())
}
