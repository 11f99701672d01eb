//! A browser without a window: it keeps cookies, and goes where it is sent.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, Url, redirect};

use crate::support::PATIENCE;

/// More redirects than any sign-in has.
const MAX_REDIRECTS: usize = 20;

/// A cookie's host, path and name. As in browsers, the port does not matter.
type Place = (String, String, String);

#[derive(Clone)]
pub struct Browser {
    http: Client,
    pub jar: BTreeMap<Place, String>,
}

/// A page, or a redirect that nobody followed.
pub struct Page {
    pub url: Url,
    pub status: u16,
    pub location: Option<String>,
    pub set_cookies: Vec<String>,
    pub text: String,
}

impl Page {
    /// The value that follows a text, up to the next quote.
    #[track_caller]
    pub fn after(&self, text: &str) -> &str {
        let (_, rest) = self.text.split_once(text).unwrap_or_else(|| panic!("no {text} in {}", self.text));
        rest.split_once('"').expect("a closing quote").0
    }

    /// Where a redirect leads.
    #[track_caller]
    pub fn target(&self) -> Url {
        let location = self.location.as_ref().unwrap_or_else(|| panic!("{} {}: {}", self.url, self.status, self.text));
        self.url.join(location).unwrap()
    }

    /// The parameter of the address of a redirect.
    #[track_caller]
    pub fn parameter(&self, name: &str) -> String {
        let target = self.target();
        let found = target.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        found.unwrap_or_else(|| panic!("no {name} in {target}"))
    }
}

impl Browser {
    pub fn new() -> Self {
        Self::with_address(None)
    }

    /// A browser at this address of the loopback, to be distinguishable by it.
    pub fn at(from: Ipv4Addr) -> Self {
        Self::with_address(Some(from.into()))
    }

    fn with_address(from: Option<IpAddr>) -> Self {
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let http = Client::builder()
            .pool_max_idle_per_host(0)
            .tls_certs_only([])
            .redirect(redirect::Policy::none())
            .no_proxy()
            .local_address(from)
            .timeout(PATIENCE)
            .build()
            .unwrap();
        Self { http, jar: BTreeMap::new() }
    }

    /// Opens a page, and stays there even if it redirects.
    pub async fn open(&mut self, url: &str) -> Page {
        self.call(Method::GET, url, &[], &[]).await
    }

    pub async fn open_with(&mut self, url: &str, headers: &[(&str, &str)]) -> Page {
        self.call(Method::GET, url, headers, &[]).await
    }

    pub async fn submit(&mut self, url: &str, form: &[(&str, &str)]) -> Page {
        self.call(Method::POST, url, &[], form).await
    }

    /// Follows redirects as long as they do not lead to an address with this beginning.
    pub async fn follow_until(&mut self, mut page: Page, beginning: &str) -> Page {
        for _ in 0..MAX_REDIRECTS {
            if page.location.is_none() || page.target().as_str().starts_with(beginning) {
                return page;
            }
            let next = page.target();
            page = self.open(next.as_str()).await;
        }
        panic!("redirects without an end, at last to {:?}", page.location);
    }

    async fn call(&mut self, method: Method, url: &str, headers: &[(&str, &str)], form: &[(&str, &str)]) -> Page {
        let url = Url::parse(url).unwrap();
        let mut request = self.http.request(method.clone(), url.clone());
        if method == Method::POST {
            request = request.form(form);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let cookies = self.cookies_for(&url);
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies);
        }
        let response = request.send().await.unwrap_or_else(|error| panic!("{url}: {error:?}"));
        let all = response.headers().get_all(SET_COOKIE);
        let set_cookies: Vec<String> = all.iter().map(|value| value.to_str().unwrap().to_owned()).collect();
        set_cookies.iter().for_each(|cookie| self.keep(&url, cookie));
        let location = response.headers().get(LOCATION).map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        Page { url, status, location, set_cookies, text }
    }

    fn cookies_for(&self, url: &Url) -> String {
        let host = url.host_str().unwrap();
        let fits = |place: &Place| place.0 == host && url.path().starts_with(&place.1);
        let pairs = self.jar.iter().filter(|(place, _)| fits(place));
        pairs.map(|(place, value)| format!("{}={value}", place.2)).collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, url: &Url, cookie: &str) {
        let mut parts = cookie.split(';').map(str::trim);
        let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).expect("a name and a value");
        let attributes: Vec<String> = parts.map(str::to_ascii_lowercase).collect();
        let path =
            cookie.split(';').find_map(|part| part.trim().strip_prefix("path=").or(part.trim().strip_prefix("Path=")));
        let place = (url.host_str().unwrap().to_owned(), path.unwrap_or("/").to_owned(), name.to_owned());
        let is_gone = value.is_empty() || attributes.iter().any(|attribute| attribute == "max-age=0");
        match is_gone {
            true => _ = self.jar.remove(&place),
            false => _ = self.jar.insert(place, value.to_owned()),
        }
    }

    /// The cookies whose name begins so.
    pub fn named(&self, beginning: &str) -> Vec<(&Place, &String)> {
        self.jar.iter().filter(|(place, _)| place.2.starts_with(beginning)).collect()
    }
}
