//! The options of packaging/install.sh, as its help and its document list them.

/// An option with what stands for its value: `--logs on|off`.
pub fn options_of_usage(script: &str) -> Vec<String> {
    let (_, usage) = script.split_once("<<'END'\ninstall.sh ").expect("usage in packaging/install.sh");
    let (usage, _) = usage.split_once("\nEND\n").expect("the end of the usage");
    let lines = usage.lines().filter_map(|line| line.strip_prefix("  --"));
    // Two blanks or more lie before the explanation.
    sorted(lines.map(|line| format!("--{}", line.split("  ").next().unwrap_or_default())))
}

/// The same, from the table of options in docs/guides/agents.md.
pub fn options_of_document(document: &str) -> Vec<String> {
    let (_, table) = document.split_once("| option | default | meaning |\n").expect("a table of options");
    let (table, _) = table.split_once("\n\n").expect("the end of the table");
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    sorted(cells.map(|(option, _)| option.replace("\\|", "|")))
}

fn sorted(options: impl Iterator<Item = String>) -> Vec<String> {
    let mut options: Vec<String> = options.collect();
    options.sort_unstable();
    options
}
