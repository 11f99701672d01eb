//! Calls with curl, compared with the API's document: the operation, its parameters and the fields of its body.

use serde_json::Value;

/// Options that have a value, and those that have none.
const VALUES: [&str; 12] = [
    "--cacert",
    "--data",
    "--data-urlencode",
    "--header",
    "--output",
    "--request",
    "--user",
    "-D",
    "-H",
    "-X",
    "-d",
    "-o",
];
const FLAGS: [&str; 9] = ["--fail", "--silent", "-L", "-N", "-f", "-fsSL", "-i", "-s", "-sf"];

/// Where the service of an example is.
const HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "signalbox.example.com"];

#[derive(Default)]
struct Call<'a> {
    url: &'a str,
    method: Option<&'a str>,
    content_type: Option<&'a str>,
    data: Vec<&'a str>,
}

/// Whether the service has what is called.
pub fn check(arguments: &[&str]) -> Result<(), String> {
    let call = read(arguments)?;
    let (address, query) = call.url.split_once('?').unwrap_or((call.url, ""));
    let path = path_of(address)?;
    let usual = if call.data.is_empty() { "get" } else { "post" };
    let method = call.method.unwrap_or(usual).to_lowercase();
    let document = signalbox::http::openapi::document();
    let operation = find(&document, &path, &method).ok_or(format!("openapi.json has no {method} {path}"))?;

    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    for name in query.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty()) {
        let is_known = parameters.iter().any(|parameter| parameter["in"] == "query" && parameter["name"] == name);
        is_known.then_some(()).ok_or(format!("{method} {path} has no parameter {name}"))?;
    }
    if call.data.is_empty() {
        return Ok(());
    }
    let content_type = call.content_type.unwrap_or("application/x-www-form-urlencoded");
    let schema = &operation["requestBody"]["content"][content_type]["schema"];
    check_fields(&document, schema, &fields(&call, content_type)?).map_err(|fault| format!("{method} {path}: {fault}"))
}

/// The schema of what a GET of an address answers.
pub fn answer_of(address: &str) -> Result<Value, String> {
    let path = path_of(address)?;
    let document = signalbox::http::openapi::document();
    let operation = find(&document, &path, "get").ok_or(format!("openapi.json has no get {path}"))?;
    let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    let resolved = pointer.and_then(|pointer| document.pointer(pointer));
    Ok(resolved.unwrap_or(schema).clone())
}

fn read<'a>(arguments: &[&'a str]) -> Result<Call<'a>, String> {
    let mut call = Call::default();
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        if VALUES.contains(&word) {
            let value = rest.next().ok_or(format!("curl {word} has no value"))?;
            match word {
                "-X" | "--request" => call.method = Some(value),
                "-d" | "--data" | "--data-urlencode" => call.data.push(value),
                "-H" | "--header" => call.content_type = value.strip_prefix("Content-Type: ").or(call.content_type),
                _ => {}
            }
        } else if word.starts_with('-') {
            let is_known = FLAGS.contains(&word);
            is_known.then_some(()).ok_or(format!("curl {word}: say in VALUES or FLAGS whether it has a value"))?;
        } else if call.url.is_empty() {
            call.url = word;
        } else {
            return Err(format!("curl gets two addresses: {} and {word}", call.url));
        }
    }
    Ok(call)
}

/// The path of an address at our service.
fn path_of(address: &str) -> Result<String, String> {
    if let Some(path) = address.strip_prefix("$BASE") {
        return Ok(format!("/api/v1{path}"));
    }
    let (_, rest) = address.split_once("://").ok_or(format!("{address} is no address"))?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.split(':').next().unwrap_or_default();
    HOSTS.contains(&host).then(|| format!("/{path}")).ok_or(format!("{host} is no host of the examples (HOSTS)"))
}

/// The operation with the fewest parts that stand for anything.
fn find<'a>(document: &'a Value, path: &str, method: &str) -> Option<&'a Value> {
    let is_parameter = |part: &str| part.starts_with('{') && part.ends_with('}');
    let fits = |template: &str| {
        let (expected, parts) = (template.split('/'), path.split('/'));
        expected.clone().count() == parts.clone().count()
            && expected.zip(parts).all(|(name, part)| name == part || (is_parameter(name) && !part.is_empty()))
    };
    let paths = document["paths"].as_object()?.iter();
    let found = paths.filter(|(template, operations)| fits(template) && !operations[method].is_null());
    let nearest = found.min_by_key(|(template, _)| template.split('/').filter(|part| is_parameter(part)).count());
    nearest.map(|(_, operations)| &operations[method])
}

/// The names of the fields of a body.
fn fields(call: &Call<'_>, content_type: &str) -> Result<Vec<String>, String> {
    if content_type != "application/json" {
        let names = call.data.iter().filter_map(|field| field.split(['=', '@']).next());
        return Ok(names.map(str::to_owned).collect());
    }
    let body: Value =
        serde_json::from_str(&call.data.concat()).map_err(|error| format!("the body is no JSON: {error}"))?;
    let object = body.as_object().ok_or("the body is no object")?;
    Ok(object.keys().cloned().collect())
}

/// Whether an object with these fields may be of a schema, and has all that it must have.
pub fn check_fields(document: &Value, schema: &Value, fields: &[String]) -> Result<(), String> {
    let schema = match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        Some(pointer) => document.pointer(pointer).ok_or("a reference of openapi.json leads nowhere")?,
        None => schema,
    };
    let known = schema["properties"].as_object().ok_or("openapi.json knows of no such body")?;
    if let Some(field) = fields.iter().find(|field| !known.contains_key(*field)) {
        return Err(format!("the body has no field {field}"));
    }
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    match required.iter().find(|name| !fields.iter().any(|field| *name == field)) {
        Some(name) => Err(format!("the body needs the field {name}")),
        None => Ok(()),
    }
}

#[test]
fn a_call_that_the_api_has_not_is_a_fault() {
    let json = ["-H", "Content-Type: application/json"];
    let create = |body: &'static str| [&["-s", "$BASE/servers"][..], &json, &["-d", body]].concat();
    for (arguments, named) in [
        (vec!["-s", "$BASE/serverz"], "get /api/v1/serverz"),
        (vec!["-s", "-X", "DELETE", "$BASE/servers"], "delete"),
        (vec!["-s", "$BASE/servers?limt=1"], "limt"),
        (vec!["-s", "https://elsewhere.example.com/healthz"], "elsewhere"),
        (vec!["--sillent", "$BASE/servers"], "--sillent"),
        (create(r#"{"nam": "web-1", "host": "203.0.113.7"}"#), "nam"),
        (create(r#"{"host": "203.0.113.7"}"#), "needs"),
        (create("{"), "JSON"),
    ] {
        let fault = check(&arguments).unwrap_err();

        assert!(fault.contains(named), "{arguments:?}: {fault}");
    }
    for arguments in [
        create(r#"{"name": "web-1", "host": "203.0.113.7"}"#),
        vec!["$BASE/auth/login", "-d", "username=ada", "--data-urlencode", "password@-"],
        vec!["-s", "-X", "POST", "$BASE/docker/$SERVER/containers/web/restart"],
        vec!["-fsSL", "https://signalbox.example.com/install.sh"],
        vec!["-s", "$BASE/alerts/summary"],
    ] {
        assert_eq!(check(&arguments), Ok(()), "{arguments:?}");
    }
}
