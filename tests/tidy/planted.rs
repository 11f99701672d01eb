//! Plants what each rule forbids: a rule that catches nothing would hold nothing.

use super::*;

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
fn a_relative_import_is_seen() {
    let domain = IMPORTS.iter().find(|rule| rule.within == DOMAIN).unwrap();

    let beside = Source::new("src/fleet.rs", "//! Fleet.\nuse super::http::Route;\n");
    let deeper = Source::new("src/metrics/query.rs", "use super::super::{\n    ws::Session,\n};\n");

    assert_eq!(
        domain.violations(&beside),
        ["src/fleet.rs:2: the domain knows nothing of HTTP and WebSockets (crate::http::Route)"]
    );
    assert_eq!(
        domain.violations(&deeper),
        ["src/metrics/query.rs:2: the domain knows nothing of HTTP and WebSockets (crate::ws::Session)"]
    );
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
}

#[test]
fn code_after_strings_comments_and_tests_is_seen() {
    let text =
        "const Q: char = '\"';\n#[cfg(test)]\nmod tests {\n    const B: &str = \"}\";\n}\nuse sea_orm::Set; // \"\n";

    let source = Source::new("src/fleet.rs", text);

    assert_eq!(IMPORTS[0].violations(&source), ["src/fleet.rs:6: only src/store names the database (sea_orm::Set)"]);
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
