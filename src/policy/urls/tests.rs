//! Which URLs may be opened, one by one.

use proptest::prelude::*;

use super::*;

fn patterns(texts: &[&str]) -> Vec<HostPattern> {
    texts
        .iter()
        .map(|text| HostPattern::read(text).unwrap())
        .collect()
}

/// The host of a URL that may be opened, with a `~` if it is international; or why it may not.
fn verdict(url: &str, schemes: &[&str], hosts: &[&str]) -> String {
    match check(url, schemes, &patterns(hosts)) {
        Ok(seen) => format!("{}{}", if seen.punycode { "~" } else { "" }, seen.host),
        Err(refused) => match refused {
            Refused::TooLong => "too long".to_owned(),
            Refused::Invisible => "invisible".to_owned(),
            Refused::Invalid => "invalid".to_owned(),
            Refused::UserInfo => "user".to_owned(),
            Refused::Scheme(scheme) => format!("scheme {scheme}"),
            Refused::Plain(host) => format!("plain {host}"),
            Refused::Host(host) => format!("host {host}"),
        },
    }
}

#[test]
fn any_host_may_be_opened_by_https() {
    for (url, expected) in [
        ("https://example.com", "example.com"),
        ("https://example.com/", "example.com"),
        ("HTTPS://EXAMPLE.COM/A?b=C#d", "example.com"),
        ("https://example.com:8443/a", "example.com"),
        ("https://example.com:443", "example.com"),
        ("https://example.com./", "example.com."),
        ("https://example.com?next=https://evil.test", "example.com"),
        ("https://example.com#@evil.test", "example.com"),
        ("https://example.com/@evil.test/a:b", "example.com"),
        ("https://example.com/a%20b?c=%0a", "example.com"),
        ("https://example.com/ä", "example.com"),
        ("https://a_b.example.com/", "a_b.example.com"),
        ("https://localhost/", "localhost"),
        ("https://10.0.0.1/", "10.0.0.1"),
        ("https://[2001:DB8::1]:8443/", "[2001:db8::1]"),
        // Addresses in odd notations are what the URL standard makes of them (§3.5).
        ("https://0x7f.1/", "127.0.0.1"),
        ("https://2130706433/", "127.0.0.1"),
        ("https://017700000001/", "127.0.0.1"),
        ("https://127.1/", "127.0.0.1"),
        ("https://0xA9FEA9FE/", "169.254.169.254"),
        ("https://１２７.0.0.1/", "127.0.0.1"),
        ("https://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]"),
        // International names are told.
        ("https://bücher.example/", "~xn--bcher-kva.example"),
        ("https://xn--bcher-kva.example/", "~xn--bcher-kva.example"),
        (
            "https://login.xn--bcher-kva.example/",
            "~login.xn--bcher-kva.example",
        ),
        ("https://аpple.com/", "~xn--pple-43d.com"),
        ("https://例え.jp/", "~xn--r8jz45g.jp"),
        // Letters in full width are those of ASCII.
        ("https://ｅｘａｍｐｌｅ.com/", "example.com"),
        ("https://example。com/", "example.com"),
        ("https://notxn--a.example/", "notxn--a.example"),
    ] {
        assert_eq!(verdict(url, &["https"], &[]), expected, "{url}");
    }
}

#[test]
fn what_is_no_url_or_can_be_read_in_two_ways_is_refused() {
    for (url, expected) in [
        ("", "invalid"),
        ("example.com", "invalid"),
        ("/a", "invalid"),
        ("//example.com/", "invalid"),
        ("https:", "invalid"),
        ("https://", "invalid"),
        ("https:///a", "invalid"),
        ("https:example.com", "invalid"),
        ("https:/example.com", "invalid"),
        ("https:///example.com", "invalid"),
        ("https://?a", "invalid"),
        ("https://#a", "invalid"),
        ("https://:443/", "invalid"),
        ("https://example.com:99999/", "invalid"),
        ("https://example.com:a/", "invalid"),
        ("https://exa mple.com/", "invisible"),
        ("https://exa<mple.com/", "invalid"),
        ("https://[::1/", "invalid"),
        ("https://[example.com]/", "invalid"),
        ("https://1.2.3.256/", "invalid"),
        ("https://1.2.3.4.5/", "invalid"),
        ("https://xn--/", "invalid"),
        // A browser takes `\` for `/`, and unescapes a host; others do not.
        ("https://example.com\\@evil.test/", "invalid"),
        ("https:\\\\example.com/", "invalid"),
        ("https://example.com/a\\b", "invalid"),
        ("https://ex%61mple.com/", "invalid"),
        ("https://example.com%2f@evil.test/", "invalid"),
        // What a browser drops before it reads.
        (" https://example.com/", "invisible"),
        ("https://example.com/ ", "invisible"),
        ("https://example.com/\n", "invisible"),
        ("https://exam\tple.com/", "invisible"),
        ("java\nscript://a", "invisible"),
        ("https://example.com/\u{0}", "invisible"),
        ("https://example.com/\u{7f}", "invisible"),
        ("https://example.com/\u{202e}moc", "invisible"),
        ("https://exam\u{ad}ple.com/", "invisible"),
        ("https://exam\u{200b}ple.com/", "invisible"),
        ("\u{feff}https://example.com/", "invisible"),
        ("https://example.com/\u{3000}", "invisible"),
        // User names, which look like hosts.
        ("https://user@example.com/", "user"),
        ("https://user:password@example.com/", "user"),
        ("https://:password@example.com/", "user"),
        ("https://@example.com/", "user"),
        ("https://example.com@evil.test/", "user"),
        ("https://example.com:443@evil.test/", "user"),
        ("https://a@b@evil.test/", "user"),
    ] {
        assert_eq!(verdict(url, &["https"], &[]), expected, "{url:?}");
    }
    let long = format!("https://example.com/{}", "a".repeat(MAX_URL));
    assert_eq!(verdict(&long, &["https"], &[]), "too long");
}

#[test]
fn a_scheme_must_be_listed_and_http_leads_to_this_machine_only() {
    let both: &[&str] = &["https", "http"];
    for (url, schemes, expected) in [
        ("http://localhost:8080/a", both, "localhost"),
        ("http://app.localhost/", both, "app.localhost"),
        ("http://127.0.0.1:8080/", both, "127.0.0.1"),
        ("http://127.9.9.9/", both, "127.9.9.9"),
        ("http://0x7f.1/", both, "127.0.0.1"),
        ("http://[::1]:8080/", both, "[::1]"),
        ("http://example.com/", both, "plain example.com"),
        ("http://0.0.0.0/", both, "plain 0.0.0.0"),
        ("http://192.168.0.1/", both, "plain 192.168.0.1"),
        (
            "http://localhost.example.com/",
            both,
            "plain localhost.example.com",
        ),
        (
            "http://127.0.0.1.example.com/",
            both,
            "plain 127.0.0.1.example.com",
        ),
        ("http://localhost@example.com/", both, "user"),
        ("http://localhost/", &["https"], "scheme http"),
        ("HTTPS://example.com/", &["HTTPS"], "example.com"),
        ("https://example.com/", &[], "scheme https"),
        ("ftp://example.com/", both, "scheme ftp"),
        (
            "javascript://example.com/%0aalert(1)",
            both,
            "scheme javascript",
        ),
        ("javascript:alert(1)", both, "invalid"),
        ("data:text/html,x", both, "invalid"),
        ("mailto:mira@example.com", &["mailto"], "invalid"),
        ("file:///etc/passwd", &["file"], "invalid"),
        ("file://server/share", both, "scheme file"),
        ("blob:https://example.com/1", both, "invalid"),
        ("view-source:https://example.com/", both, "invalid"),
        // An application's own scheme, if the operator wants it.
        (
            "com.example.app://callback/a",
            &["com.example.app"],
            "callback",
        ),
        (
            "com.example.app://user@callback/a",
            &["com.example.app"],
            "user",
        ),
        ("com.example.app:/callback", &["com.example.app"], "invalid"),
    ] {
        assert_eq!(verdict(url, schemes, &[]), expected, "{url}");
    }
}

#[test]
fn a_host_must_be_one_of_the_listed_ones() {
    let some: &[&str] = &[
        "*.example.com",
        "Example.org",
        "dev.example.net:8443",
        "[::1]",
        "*.bücher.example",
    ];
    for (url, expected) in [
        ("https://login.example.com/", "login.example.com"),
        ("https://a.b.example.com:8443/", "a.b.example.com"),
        ("https://LOGIN.EXAMPLE.COM./", "login.example.com."),
        ("https://example.com/", "host example.com"),
        ("https://.example.com/", "host .example.com"),
        ("https://evilexample.com/", "host evilexample.com"),
        (
            "https://example.com.evil.test/",
            "host example.com.evil.test",
        ),
        (
            "https://login.example.comevil.test/",
            "host login.example.comevil.test",
        ),
        ("https://evil.test/login.example.com", "host evil.test"),
        ("https://evil.test?login.example.com", "host evil.test"),
        ("https://login.example.com@evil.test/", "user"),
        ("https://example.org/", "example.org"),
        ("https://example.org:444/", "example.org"),
        ("https://www.example.org/", "host www.example.org"),
        ("https://dev.example.net:8443/", "dev.example.net"),
        ("https://dev.example.net/", "host dev.example.net"),
        ("https://dev.example.net:443/", "host dev.example.net"),
        ("https://[::1]/", "[::1]"),
        ("https://[0:0::1]/", "[::1]"),
        ("https://127.0.0.1/", "host 127.0.0.1"),
        ("https://a.bücher.example/", "~a.xn--bcher-kva.example"),
        (
            "https://a.xn--bcher-kva.example/",
            "~a.xn--bcher-kva.example",
        ),
        (
            "https://login.еxample.com/",
            "host login.xn--xample-2of.com",
        ),
    ] {
        assert_eq!(verdict(url, &["https"], some), expected, "{url}");
    }
    assert_eq!(
        verdict("https://127.0.0.1/", &["https"], &["0x7f.1"]),
        "127.0.0.1"
    );
    assert_eq!(
        verdict("https://example.com/", &["https"], &["example.com:443"]),
        "example.com"
    );
}

#[test]
fn a_pattern_is_a_host_and_nothing_else() {
    for text in [
        "",
        "*",
        "*.",
        "*.*.example.com",
        "a.*.example.com",
        "*example.com",
        "https://example.com",
        "example.com/",
        "example.com:",
        "example.com:x",
        "example.com:99999",
        "example.com:+1",
        "user@example.com",
        "exa mple.com",
        "ex%61mple.com",
        "*.127.0.0.1",
        "*.[::1]",
        "::1",
        "[::1",
        "exam?ple.com",
    ] {
        assert_eq!(HostPattern::read(text), Err(NotAPattern), "{text}");
    }
}

/// No reason repeats what can hold a secret.
#[test]
fn a_refusal_repeats_the_host_alone() {
    for url in [
        "https://evil.test/canary?canary#canary",
        "https://canary:canary@evil.test/",
        "http://evil.test/canary",
        "ftp://evil.test/canary",
        "https://evil.test/\tcanary",
        "https:canary",
    ] {
        let refused = check(url, &["https", "http"], &patterns(&["example.com"])).unwrap_err();
        assert!(
            !format!("{refused} {refused:?}").contains("canary"),
            "{refused}"
        );
    }
}

proptest! {
    /// Whatever passes leads, for a browser, to a host of the list.
    #[test]
    fn no_trick_leads_elsewhere(
        start in proptest::sample::select(vec!["https://", "https:", ""]),
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "https:", "http:", "//", "/", "\\", "@", ":", "443", "?", "#", ".", "example.com", "evil.test", "%2e", "%40", "\t", "[", "]", "::1", "0x7f.1", "xn--", "ä", "。", "a.example.com",
        ]), 0..6),
    ) {
        let url = format!("{start}{}", parts.concat());
        if let Ok(seen) = check(&url, &["https"], &patterns(&["*.example.com"])) {
            let read = Url::parse(&url).unwrap();
            prop_assert_eq!(read.host_str(), Some(seen.host.as_str()));
            prop_assert!(seen.host.trim_end_matches('.').ends_with(".example.com"), "{}", url);
            prop_assert_eq!((read.username(), read.password(), read.scheme()), ("", None, "https"));
        }
    }

    #[test]
    fn no_text_is_too_strange_to_be_looked_at(url in "\\PC{0,40}", pattern in "\\PC{0,20}") {
        drop(check(&url, &["https"], &[]));
        drop(HostPattern::read(&pattern));
    }
}
