//! Plants violations of each rule, because a rule that finds nothing would enforce nothing.

use super::layers::LAYERS;
use super::*;

/// Ways to name a module.
const SPELLINGS: usize = 5;

/// Each way to name something that an import rule must see.
fn spellings(name: &str) -> Vec<String> {
    let (parent, last) = name.rsplit_once("::").unwrap_or(("", name));
    let mut spellings = vec![
        format!("use {name}::Thing;"),
        format!("pub use {name}::{{Thing, Other}};"),
        format!("fn f() {{\n    let thing = {name}::thing();\n}}"),
    ];
    if !parent.is_empty() {
        spellings.push(format!("use {parent}::{{other, {last}::Thing}};"));
        spellings.push(format!("use {parent}::{{\n    other::{{A, B}},\n    {last}::{{C, D}},\n}};"));
    }
    spellings
}

#[test]
fn every_import_rule_catches_every_spelling() {
    for rule in IMPORTS {
        for (place, name) in rule.within.iter().flat_map(|place| rule.names.iter().map(move |name| (place, name))) {
            for text in spellings(name) {
                let planted = Source::new(&format!("{place}.rs"), &text);

                assert_ne!(rule.violations(&planted), Vec::<String>::new(), "{}: {text}", rule.rule);
            }
        }
        for place in rule.except {
            let allowed = Source::new(&format!("{place}/planted.rs"), &spellings(rule.names[0]).concat());

            assert_eq!(rule.violations(&allowed), Vec::<String>::new());
        }
    }
}

#[test]
fn a_way_back_is_caught() {
    for (here, layer) in LAYERS.iter().enumerate() {
        let (below, rest) = LAYERS.split_at(here);
        for module in *layer {
            let planted = |text: &str| layers::violations(&Source::new(&format!("src/{module}/deep/er.rs"), text));
            for other in rest.iter().copied().flatten().filter(|other| *other != module) {
                let caught = format!("{module} names {other}, which does not lie below it");

                let violations = planted(&spellings(&format!("crate::{other}")).concat());

                let count = violations.iter().filter(|violation| violation.ends_with(&caught)).count();
                assert!(count >= SPELLINGS, "{caught}: {violations:?}");
            }
            for other in below.iter().copied().flatten().chain([module]) {
                let text = format!("use crate::{other}::Thing;\nfn f() {{\n    crate::{other}::g();\n}}\n");

                assert_eq!(planted(&text), Vec::<String>::new());
            }
        }
    }
}

#[test]
fn a_module_in_no_layer_is_caught() {
    let unlisted = Source::new("src/shortcut.rs", "pub fn f() {}\n");
    let naming = Source::new("src/http/mod.rs", "use crate::shortcut::f;\n");

    assert_eq!(layers::violations(&unlisted), ["src/shortcut.rs:1: shortcut is in no layer"]);
    assert_eq!(layers::violations(&naming), ["src/http/mod.rs:1: http names shortcut, which is in no layer"]);
    assert_ne!(layers::misprints(&[unlisted]), Vec::<String>::new());
}

#[test]
fn tests_may_name_anything() {
    let text = "use crate::http::Route;\n";
    let inside = Source::new("src/fleet/mod.rs", &format!("#[cfg(test)]\nmod tests {{\n{text}}}\n"));

    assert_eq!(layers::violations(&inside), Vec::<String>::new());
    assert_eq!(layers::violations(&Source::new("src/fleet/tests/more.rs", text)), Vec::<String>::new());
    assert_ne!(layers::violations(&Source::new("src/fleet/mod.rs", text)), Vec::<String>::new());
}

#[test]
fn a_relative_import_is_seen() {
    let beside = Source::new("src/fleet.rs", "//! Fleet.\nuse super::http::Route;\n");
    let deeper = Source::new("src/metrics/query.rs", "use super::super::{\n    ws::Session,\n};\n");

    assert_eq!(layers::violations(&beside), ["src/fleet.rs:2: fleet names http, which does not lie below it"]);
    assert_eq!(layers::violations(&deeper), ["src/metrics/query.rs:2: metrics names ws, which does not lie below it"]);
}

#[test]
fn what_is_not_code_breaks_no_import_rule() {
    let text = r##"
        //! Unlike `sea_orm::entity`, crate::http::x does not ...
        /* use actix_web::web; */
        fn f<'a>(entity: &'a str) -> (&'a str, char, &'static str) { (entity, '"', "use crate::http::x; \" sea_orm::y") }
        const RAW: &str = r#"sqlx::query "and" crate::ws::z"#;
        #[cfg(test)]
        mod tests {
            use crate::http::Route;
            fn g() { let _ = '{'; }
        }
    "##;

    let source = Source::new("src/fleet.rs", text);

    let violations: Vec<String> = IMPORTS.iter().flat_map(|rule| rule.violations(&source)).collect();
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!(layers::violations(&source), Vec::<String>::new());
}

#[test]
fn code_after_strings_comments_and_tests_is_seen() {
    let text =
        "const Q: char = '\"';\n#[cfg(test)]\nmod tests {\n    const B: &str = \"}\";\n}\nuse sea_orm::Set; // \"\n";

    let source = Source::new("src/fleet.rs", text);

    assert_eq!(IMPORTS[0].violations(&source), ["src/fleet.rs:6: only the store names the database (sea_orm::Set)"]);
    assert_eq!(source.product_lines(), 2);
}

#[test]
fn everything_forbidden_is_caught() {
    for (what, _) in FORBIDDEN_CODE {
        let planted = Source::new("src/a.rs", &format!("fn f() {{}}\n{what}\n// {what}\n"));

        assert_eq!(forbidden_code(&planted).len(), 1, "{what}");
    }
    for (what, _) in FORBIDDEN_WORDS {
        let planted = Source::new("src/a.rs", &format!("// {what}: later\nconst {what}LIST: u8 = 0;\n"));

        assert_eq!(forbidden_words(&planted).len(), 1, "{what}");
    }
    for path in LOCAL_PATHS {
        let planted =
            Source::new("src/a.rs", &format!("const A: &str = \"{path}x\";\n#[cfg(test)]\nmod t {{ /* {path} */ }}\n"));

        assert_eq!(local_paths(&planted).len(), 1, "{path}");
    }
}

#[test]
fn a_long_file_and_a_long_median_are_caught() {
    let of = |lines: usize| Source::new("src/a.rs", &"fn f() {}\n".repeat(lines));

    assert_eq!(too_long(&[of(LONGEST_FILE), of(1), of(1)]), Vec::<String>::new());
    assert_eq!(too_long(&[of(LONGEST_FILE + 1), of(1), of(1)]), ["src/a.rs:401: longer than 400 lines (median 1)"]);
    assert_eq!(too_long(&[of(LARGEST_MEDIAN + 1)]), ["the median file has 201 lines, more than 200"]);
}
