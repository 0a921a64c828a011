//! The ways to name a secret, to hide its name, and to speak of one without asking for it.

use super::*;

#[test]
fn identifiers_are_read_in_every_spelling() {
    for name in [
        "api_key",
        "apiKey",
        "ApiKey",
        "APIKey",
        "API_KEY",
        "api-key",
        "api.key",
        "apikey",
        "APIKEY",
        "myApiKey",
        "openai_api_key",
        "apiKey2",
        "x-api-key",
        "api key",
    ] {
        let expected = format!("{name}: an API key");
        assert_eq!(
            found("", &format!(r#""{name}":{{"type":"string"}}"#)),
            expected
        );
    }
    for name in [
        "dbPassword",
        "DBPASSWORD",
        "db_password",
        "password1",
        "userpassword",
        "passwordConfirm",
        "password_new",
        "PassWord",
        "passwords",
    ] {
        let expected = format!("{name}: a password");
        assert_eq!(
            found("", &format!(r#""{name}":{{"type":"string"}}"#)),
            expected
        );
    }
    for name in [
        "passwordless",
        "password_policy",
        "passwordHint",
        "apiKeyName",
        "api_key_id",
        "keyApi",
        "token_count",
        "tokenizer",
        "pinned",
        "spin",
        "keypad",
        "secretary",
        "compass",
        "passenger",
        "bypass",
        "encode",
        "mypinboard",
        "secretsManagerRegion",
        "forgotPassword",
        "keyboard",
    ] {
        assert_eq!(
            found("", &format!(r#""{name}":{{"type":"string"}}"#)),
            "nothing",
            "{name}"
        );
    }
}

#[test]
fn a_word_cannot_be_hidden() {
    for title in [
        "p a s s w o r d",
        "P-A-S-S-W-O-R-D",
        "p.a.s.s.w.o.r.d",
        "pass\u{ad}word",
        "pass\u{200d}word",
        "p\u{301}assword",
        "pa\u{fe0f}ssword",
        "\u{202e}password",
        "𝗽𝗮𝘀𝘀𝘄𝗼𝗿𝗱",
        "ⓟⓐⓢⓢⓦⓞⓡⓓ",
        "ｐａｓｓｗｏｒｄ",
        "раѕѕwоrd",
        "раѕѕԝоrԁ",
        "ρassword",
        "p@ssw0rd",
        "pa$$word",
        "PASSW0RD",
        "pässwörd",
        "pass_word",
    ] {
        let field = format!(r#""x":{{"type":"string","title":{}}}"#, quoted(title));
        assert_eq!(found("", &field), "x: a password", "{title}");
    }
    // What only looks a little like it is not it.
    for title in [
        "A B C D",
        "1st place",
        "Route 5a",
        "C4 p5",
        "Сорт",
        "Рост",
        "p a s t e",
    ] {
        let field = format!(r#""x":{{"type":"string","title":{}}}"#, quoted(title));
        assert_eq!(found("", &field), "nothing", "{title}");
    }
}

/// What is wrong with the verdict on these titles of a field without a name.
fn misjudged(titles: &[&'static str], asks: bool) -> Vec<&'static str> {
    let judged = |title: &str| {
        let field = format!(r#""x":{{"type":"string","title":{}}}"#, quoted(title));
        found("", &field) != "nothing"
    };
    let wrong = titles.iter().filter(|title| judged(title) != asks);
    wrong.copied().collect()
}

#[test]
fn titles_ask_in_many_languages() {
    let wrong = misjudged(
        &[
            "Global API Key",
            "x-api-key",
            "App password",
            "OAuth token",
            "[sudo] password for mira",
            "Steam Guard code",
            "Pre-shared key",
            "Your 24 recovery words",
            "Wallet private key",
            "Card details (number, expiry, CVV)",
            "Registration lock PIN",
            "MFA code",
            "Choose a password",
            "User name and password",
            "Enter code from authenticator app",
            "Security question: your first pet?",
            "Ihr Passwort",
            "Einmalpasswort (6-stellig)",
            "Online-Banking-PIN",
            "API-Schlüssel",
            "Zugangsdaten",
            "Mot de passe",
            "Code confidentiel",
            "Clé d’API",
            "Jeton d'accès",
            "Contraseña",
            "Clave de acceso al sistema",
            "Frase semilla",
            "Senha do gov.br",
            "Código de verificação",
            "Chave de API",
            "Numero della carta di credito",
            "Codice di verifica",
            "Chiave privata",
            "Wachtwoord",
            "API-sleutel",
            "Twoje hasło",
            "Numer karty",
            "Токен бота",
            "Сид-фраза кошелька",
            "Номер карты",
            "Heslo",
            "Lösenord",
            "Şifre",
            "Mật khẩu",
            "Kata sandi",
            "كلمة المرور",
            "סיסמה",
            "पासवर्ड",
            "รหัสผ่าน",
            "信用卡号码",
            "助记词",
            "請輸入密碼",
            "暗証番号（4桁）",
            "パスワード（確認）",
            "일회용 비밀번호(OTP)",
            "개인 키",
        ],
        true,
    );
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn titles_speak_of_secrets_in_many_languages() {
    let wrong = misjudged(
        &[
            "API key name/label",
            "PIN code area (postal code)",
            "Token scopes",
            "Password rotation schedule",
            "Text for the password field",
            "Name of the variable that holds the password",
            "What does JWT stand for?",
            "Number of room keys",
            "Message on the card",
            "ID card number",
            "Last four digits of your card number",
            "Pass or fail?",
            "Rail pass",
            "Shade of tan",
            "Color code",
            "Invite code",
            "Why do you need the private key?",
            "What happened when the access token expired?",
            "Regular expression for validating passwords",
            "Passworthinweis",
            "Neue Passwortregel",
            "Mindestlänge des Passworts",
            "Schlüsselwort",
            "Ort des Schlüssels",
            "Nom de la clé API",
            "Clé primaire",
            "Mot-clé",
            "Code postal",
            "Nombre del token de acceso",
            "Código do produto",
            "Nome da chave de API",
            "Parola chiave",
            "Postcode",
            "Numer zamówienia",
            "Название API-ключа",
            "Ключевые слова",
            "Номер телефона для кода подтверждения",
            "API密钥名称",
            "密码长度",
            "会员卡号",
            "APIキーの名前",
            "最大トークン数",
            "비밀번호 힌트",
            "최대 토큰 개수",
            "お名前",
            "姓名",
        ],
        false,
    );
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The message counts for a field that says nothing of itself, and for no other.
#[test]
fn a_message_asks_by_a_field_without_a_name_of_its_own() {
    assert_eq!(
        found(
            "Please enter your credit card.",
            r#""value":{"type":"string"}"#
        ),
        "value: a card number"
    );
    assert_eq!(
        found(
            "Pay by credit card, by bank transfer or in cash.",
            r#""value":{"type":"string"}"#
        ),
        "nothing"
    );
    let field = |name: &str| format!(r#""{name}":{{"type":"string"}}"#);
    for title in ["Code", "Enter code", "The code", "Code eingeben"] {
        let code = format!(r#""x":{{"type":"integer","title":{}}}"#, quoted(title));
        let message = "We sent a verification code to your phone.";
        assert_eq!(found(message, &code), "x: a one-time code", "{title}");
        assert_eq!(found("Which product?", &code), "nothing", "{title}");
    }
    for message in [
        "Enter your password",
        "Please enter your GitHub password to continue.",
        "Your password?",
        "Password:",
        "What is your password?",
        "What's the admin password?",
        "I need your user name and password.",
        "Reply with your password.",
        "Hello!\nType the root password, please.",
        "Please verify your account by replying with your password.",
        "Wie lautet das Kennwort?",
        "Bitte Passwort eingeben",
        "Quel est votre mot de passe ?",
        "请输入密码",
        "Пароль?",
    ] {
        assert_eq!(
            found(message, &field("value")),
            "value: a password",
            "{message}"
        );
        assert_eq!(found(message, &field("email")), "nothing", "{message}");
        let formatted = r#""value":{"type":"string","format":"date"}"#;
        assert_eq!(found(message, formatted), "nothing", "{message}");
    }
    for message in [
        "Never share your password with anyone.",
        "Do not enter your password here.",
        "Your password was changed.",
        "Why do you need a password?",
        "What is a password?",
        "Forgot your password?",
        "Wrong password. Try again.",
        "Enter the name of the password vault.",
        "We never ask for your password",
        "Your password has expired",
        "A password protects the file.",
        "How do I enter my password?",
        "Enter a hint for your password",
        "Which rule, e.g. enter your password, failed?",
    ] {
        assert_eq!(found(message, &field("value")), "nothing", "{message}");
    }
}

#[test]
fn the_title_and_description_of_the_form_are_part_of_its_message() {
    let schema = r#"{"type":"object","title":"Enter your password","properties":{"value":{"type":"string"}}}"#;
    assert_eq!(judged("Hello", schema), "value: a password");
}
