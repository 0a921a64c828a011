//! `auth`: nothing is open by mistake.

use super::{check_with_server, config};
use crate::config::{Access, KeySource};

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789ABCDEF0123456789abcdef";

#[test]
fn without_auth_only_loopback_is_served() {
    for listen in [
        "127.0.0.1:0",
        "127.8.8.8:80",
        "'[::1]:8080'",
        "'[::ffff:127.0.0.1]:8080'",
    ] {
        assert!(
            matches!(config(&format!("listen: {listen}")).access, Access::Local),
            "{listen}"
        );
    }
    for listen in [
        "0.0.0.0:8080",
        "10.0.0.1:80",
        "'[::]:8080'",
        "'[2001:db8::1]:80'",
    ] {
        check_with_server(
            &format!("listen: {listen}"),
            &[
                "1:9: listen: other machines can reach this address, and no `auth` says who gets in; \
               add `auth` with `issuers` or `api_keys`; or, on a private network, write `auth: open` \
               to let everybody in; or listen on `127.0.0.1`",
            ],
        );
    }
}

#[test]
fn openness_is_written_out() {
    let open = config("listen: 10.0.0.1:8080\nauth: open");
    assert!(matches!(open.access, Access::Open));
    check_with_server(
        "auth: opne",
        &[
            "1:7: auth: `opne` is not a way to let somebody in; list `issuers` or `api_keys`, or write \
           `auth: open` to let everybody in",
        ],
    );
}

#[test]
fn a_gateway_on_every_address_says_how_clients_name_it() {
    let problem = "1:9: listen: this is every address of the machine and none that clients could \
                   name; add `public_url: https://mcp.example.com`, with the address that clients use";
    let keys = format!("auth: {{ api_keys: [{{ name: ci, sha256: {DIGEST} }}] }}");
    for listen in ["0.0.0.0:8080", "'[::]:8080'", "'[::ffff:0.0.0.0]:80'"] {
        let listen = format!("listen: {listen}");
        check_with_server(&format!("{listen}\n{keys}"), &[problem]);
        let hosts = "allowed_hosts: [mcp.example.com]";
        check_with_server(&format!("{listen}\n{keys}\n{hosts}"), &[problem]);
        check_with_server(
            &format!("{listen}\nauth: open"),
            &[&format!(
                "{problem}, or list their names for the gateway under `allowed_hosts`"
            )],
        );
        config(&format!("{listen}\nauth: open\n{hosts}"));
        for auth in ["auth: open", &keys] {
            config(&format!(
                "{listen}\n{auth}\npublic_url: https://mcp.example.com"
            ));
        }
    }
}

#[test]
fn an_auth_that_lists_nobody_is_refused() {
    let nobody = "auth: nobody is listed, so nobody could get in; list `issuers` or `api_keys`, or \
                  write `auth: open` to let everybody in";
    for auth in ["{}", "{ issuers: [] }", "{ issuers: [], api_keys: [] }"] {
        check_with_server(&format!("auth: {auth}"), &[&format!("1:7: {nobody}")]);
    }
}

#[test]
fn issuers_are_kept_letter_by_letter() {
    let config = config(
        "\
auth:
  issuers:
    - issuer: https://Login.example.com/
    - { issuer: http://127.0.0.1:9000, jwks_file: keys.json, audiences: [one, two] }
    - { issuer: http://localhost:9000/t1, jwks_url: https://keys.example.com/jwks?v=1 }",
    );
    let Access::Required(auth) = config.access else {
        panic!("{:?}", config.access)
    };
    let [first, second, third] = auth.issuers.as_slice() else {
        panic!("{:?}", auth.issuers)
    };
    assert_eq!(first.issuer, "https://Login.example.com/");
    assert!(matches!(first.keys, KeySource::Discovery));
    assert!(first.audiences.is_empty());
    assert!(matches!(&second.keys, KeySource::File(path) if path.as_os_str() == "keys.json"));
    assert_eq!(second.audiences, ["one", "two"]);
    assert!(
        matches!(&third.keys, KeySource::Url(url) if url.as_str() == "https://keys.example.com/jwks?v=1")
    );
}

#[test]
fn issuers_and_their_keys_can_not_be_changed_on_the_way() {
    check_with_server(
        "\
auth:
  issuers:
    - { issuer: http://login.example.com }
    - { issuer: https://login.example.com/?a=b }
    - { issuer: https://a, jwks_url: http://keys.example.com/jwks }",
        &[
            "3:17: auth.issuers[0].issuer: the value is plain http, which anybody on the way can \
             change (only loopback may be); write the exact `iss` of its tokens, as \
             `https://login.example.com`",
            "4:17: auth.issuers[1].issuer: the value has a query (`?`), which an issuer can't have; \
             write the exact `iss` of its tokens, as `https://login.example.com`",
            "5:38: auth.issuers[2].jwks_url: the value is plain http, which anybody on the way can \
             change (only loopback may be); write an https address, as \
             `https://login.example.com/jwks`; keys from a file are `jwks_file`",
        ],
    );
}

#[test]
fn an_issuer_is_listed_once_with_one_source_of_keys() {
    check_with_server(
        "\
auth:
  issuers:
    - { issuer: https://a, jwks_url: https://a/jwks, jwks_file: a.json }
    - { issuer: https://a }
    - { audiences: [x, ''] }",
        &[
            "3:54: auth.issuers[0]: `jwks_url` and `jwks_file` both say where the keys are; keep one \
             of the two",
            "4:17: auth.issuers[1].issuer is listed twice, first in line 3; keep one, with the \
             `audiences` of both",
            "5:7: auth.issuers[2] has no `issuer`; add `issuer: https://login.example.com`",
            "5:24: auth.issuers[2].audiences[1]: the empty text is not an audience; write the exact \
             `aud` of the tokens",
        ],
    );
}

#[test]
fn an_issuer_is_more_than_its_name() {
    check_with_server(
        "auth: { issuers: [https://a] }",
        &[
            "1:19: auth.issuers[0] is a text where keys with values belong; write `{ issuer: … }` there, \
           or remove the key",
        ],
    );
}

#[test]
fn an_api_key_opens_the_servers_that_it_names_or_every_one() {
    let other = DIGEST.replace('0', "1");
    let config = config(&format!(
        "auth: {{ api_keys: [{{ name: ci, sha256: {DIGEST}, servers: [booking] }},
                             {{ name: Night build, sha256: '{other}' }}] }}"
    ));
    let Access::Required(auth) = config.access else {
        panic!("{:?}", config.access)
    };
    let [ci, night] = auth.api_keys.as_slice() else {
        panic!("{:?}", auth.api_keys)
    };
    assert_eq!(
        (ci.name.as_str(), night.name.as_str()),
        ("ci", "Night build")
    );
    assert_eq!(
        ci.sha256[..8],
        [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]
    );
    assert!(
        ci.servers
            .as_ref()
            .is_some_and(|servers| servers.len() == 1 && servers.contains("booking"))
    );
    assert!(night.servers.is_none());
}

#[test]
fn a_digest_of_digits_alone_is_read_as_written() {
    let digits = "12345678".repeat(8);
    let config = config(&format!(
        "auth: {{ api_keys: [{{ name: ci, sha256: {digits} }}] }}"
    ));
    let Access::Required(auth) = config.access else {
        panic!("{:?}", config.access)
    };
    assert_eq!(auth.api_keys[0].sha256[..5], [0x12, 0x34, 0x56, 0x78, 0x12]);
}

#[test]
fn api_keys_are_digests_with_names_of_their_own() {
    let usual = "write its SHA-256 as 64 hexadecimal digits: printf %s \"$KEY\" | sha256sum | cut -d' ' \
                 -f1";
    check_with_server(
        &format!(
            "\
auth:
  api_keys:
    - {{ name: ci, sha256: {DIGEST} }}
    - {{ name: ci, sha256: {} }}
    - {{ name: b, sha256: {DIGEST} }}
    - {{ name: c, sha256: the-key-itself }}
    - {{ name: d, sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 }}
    - {{ name: '', servers: [] }}
    - {{ name: e, sha256: {}, servers: [bookin, calendar] }}",
            DIGEST.replace('0', "1"),
            DIGEST.replace('0', "2"),
        ),
        &[
            "4:15: auth.api_keys[1].name: another key has this name, in line 3; give each key its \
             own name: the audit log tells them apart by it",
            "5:26: auth.api_keys[2].sha256: the key in line 3 is the same one; give each key its own \
             secret, or keep one of the two",
            &format!(
                "6:26: auth.api_keys[3].sha256: the value is not 64 hexadecimal digits; {usual}"
            ),
            &format!(
                "7:26: auth.api_keys[4].sha256: the value is the SHA-256 of the empty text, so no \
                 key at all; {usual}"
            ),
            "8:7: auth.api_keys[5] has no `sha256`; make a key, KEY=cf_$(openssl rand -hex 24), and \
             add `sha256: \"…\"` with what this prints: printf %s \"$KEY\" | sha256sum | cut -d' ' -f1",
            "8:15: auth.api_keys[5].name: the empty text is not a name; write 1 to 64 letters, as in \
             `ci`",
            "8:28: auth.api_keys[5].servers: the key opens no server; name servers, or remove the \
             line to open every one",
            "9:102: auth.api_keys[6].servers[0]: `bookin` is not a server of this gateway; write \
             `booking`",
            "9:110: auth.api_keys[6].servers[1]: `calendar` is not a server of this gateway; write \
             the name of a server that `servers` has",
        ],
    );
}

#[test]
fn a_digest_as_sha256sum_prints_it_is_told_what_to_drop() {
    for more in ["  -", " *-", "  key.txt"] {
        check_with_server(
            &format!("auth: {{ api_keys: [{{ name: ci, sha256: \"{DIGEST}{more}\" }}] }}"),
            &[
                "1:40: auth.api_keys[0].sha256: the value has more behind its 64 digits; drop the `  -` \
                 that sha256sum writes behind them",
            ],
        );
    }
}
