//! The words by which forms ask for secrets, in some twenty languages.
//!
//! They are read as [`Text`](super::text::Text) reads a form: small letters without accents. A `*` at
//! the end of a word stands for its endings. Lists are for adding to: a phrase belongs to what it asks
//! for, and is strong if it means that by itself, whatever is around it.

use super::Secret;
use super::Secret::{
    ApiKey, CardCode, CardNumber, Login, OneTimeCode, Password, Pin, PrivateKey, SecurityAnswer,
    SeedPhrase, Shared, Token,
};

/// How much a phrase says by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
    /// It names a secret wherever it is.
    Strong,
    /// It names a secret unless something around it says otherwise.
    Weak,
    /// The same, and only as the name or title of a field, or as what a person is told to type.
    Named,
}

use Strength::{Named, Strong, Weak};

/// Words that are written together, and how they are read; with `*` only at the end of a word.
pub(super) const COMPOUNDS: &[(&str, &str)] = &[
    ("kreditkartennummer", "kreditkartennummer"),
    ("passwordless", "passwordless"),
    ("secretaccesskey", "secret access key"),
    ("verificationcode", "verification code"),
    ("recoveryphrase", "recovery phrase"),
    ("adgangskode", "adgangskode"),
    ("accesstoken", "access token"),
    ("bearertoken", "bearer token"),
    ("refreshtoken", "refresh token"),
    ("authtoken", "auth token"),
    ("apitoken", "api token"),
    ("bottoken", "bot token"),
    ("cardnumber", "card number"),
    ("clientsecret", "client secret"),
    ("seedphrase", "seed phrase"),
    ("privatekey", "private key"),
    ("secretkey", "secret key"),
    ("accesskey", "access key"),
    ("passphrase", "passphrase"),
    ("motdepasse", "mot de passe"),
    ("wachtwoord", "wachtwoord"),
    ("contrasena", "contrasena"),
    ("zugangscode", "zugangscode"),
    ("passwort", "passwort"),
    ("password", "password"),
    ("kennwort", "kennwort"),
    ("passcode", "passcode"),
    ("losenord", "losenord"),
    ("apikey", "api key"),
    ("passwd", "passwd"),
    ("mnemonic", "mnemonic"),
    ("пароль", "пароль"),
    ("*token", "token"),
    ("*secret", "secret"),
    ("*pwd", "pwd"),
    ("*cvv", "cvv"),
    ("*otp", "otp"),
];

/// What secrets are called, in scripts that separate words.
pub(super) const PHRASES: &[(Secret, Strength, &str)] = &[
    // English, and what others took from it.
    (
        Password,
        Strong,
        "password, pass word, passwd, passwrd, passphrase, pass phrase, pre shared key, preshared key, wifi key, wi fi key, wpa key, network security key",
    ),
    (Password, Weak, "pwd, psw, pw, psk"),
    (Password, Named, "pass"),
    (
        ApiKey,
        Strong,
        "api key*, api secret*, secret key, secret api key, secret access key, access key, subscription key, \
         master key, encryption key, decryption key, signing key, openai key, anthropic key, \
         stripe key, gemini key, app key, application key, consumer key, service role key, service key",
    ),
    (ApiKey, Weak, "account key, admin key, storage key"),
    (
        Token,
        Strong,
        "access token, personal access token, auth token, authentication token, authorization token, bearer token, \
         refresh token, api token, bot token, session token, security token, oauth token, jwt, jwt token, reset token, \
         deploy token, service token, github token, gitlab token, slack token, discord token, telegram token, \
         notion token, npm token, login token, github pat, gitlab pat, azure pat, pat token,  session cookie, auth cookie, login cookie",
    ),
    (Token, Weak, "token"),
    (Token, Named, "bearer"),
    (
        Shared,
        Strong,
        "client secret, app secret, application secret, consumer secret, shared secret, signing secret, \
         webhook secret, jwt secret, totp secret, otp secret, hmac secret",
    ),
    (Shared, Weak, "secret"),
    (Shared, Named, "secrets"),
    (
        Pin,
        Strong,
        "card pin, debit pin, bank pin, sim pin, device pin, digit pin, security pin, account pin, login pin, passcode, pass code",
    ),
    (Pin, Weak, "pin, pin number, pin code, pincode, pin kod"),
    (
        CardNumber,
        Strong,
        "card number, card no, credit card number, debit card number, bank card number, primary account number",
    ),
    (
        CardNumber,
        Named,
        "credit card, debit card, payment card, card details, cc number, ccnum, cc num",
    ),
    (
        CardCode,
        Strong,
        "cvv, cvc, cvv 2, cvc 2, card verification value, card verification code, card security code, security code of the card",
    ),
    (
        OneTimeCode,
        Strong,
        "otp, totp, one time password*, one time passcode*, one time code*, one time pin, onetime code, 2 fa code, 2 fa, \
         mfa code, tfa code, two factor code, two factor authentication code, authenticator code, verification code*, \
         authentication code, auth code, security code, login code, sign in code, sms code, text message code, \
         backup code*, recovery code*, recovery key*, mtan, photo tan, push tan, sms tan",
    ),
    (
        OneTimeCode,
        Weak,
        "tan, digit code, guard code, code we sent, code we texted, code we emailed, code you received, code sent to, code that was sent, \
         code from the sms, code from the text message, code from your text message, code from your sms, code from your phone, code from your authenticator, code from the authenticator, code from authenticator, \
         code from authenticator app, code from the authenticator app, code from your authenticator app",
    ),
    (
        SeedPhrase,
        Strong,
        "seed phrase, recovery phrase, secret recovery phrase, secret phrase, backup phrase, wallet phrase, mnemonic phrase, \
         wallet seed, seed words, recovery words, recovery seed",
    ),
    (SeedPhrase, Weak, "mnemonic"),
    (
        PrivateKey,
        Strong,
        "private key*, privkey, service account key, service account json, keystore file contents",
    ),
    (PrivateKey, Weak, "ssh key, gpg key, pgp key"),
    (
        Login,
        Strong,
        "login credentials, account credentials, sign in credentials, user credentials, connection string, login details, your credentials",
    ),
    (Login, Weak, "credentials"),
    (
        SecurityAnswer,
        Strong,
        "mother s maiden name, mothers maiden name, security answer, secret answer, answer to your security question, answer to the security question",
    ),
    (SecurityAnswer, Named, "security question, secret question"),
    // German.
    (
        Password,
        Strong,
        "passwort*, kennwort*, zugangscode, losungswort, geheimwort",
    ),
    (
        ApiKey,
        Strong,
        "api schlussel, geheimer schlussel, geheimen schlussel, zugriffsschlussel",
    ),
    (Token, Strong, "zugriffstoken, zugangstoken"),
    (Pin, Strong, "geheimzahl, geheimnummer, pin nummer"),
    (
        CardNumber,
        Strong,
        "kreditkartennummer, kartennummer, nummer ihrer kreditkarte, nummer der kreditkarte",
    ),
    (CardNumber, Named, "kreditkarte"),
    (
        CardCode,
        Strong,
        "kartenprufnummer, prufziffer der karte, sicherheitscode der karte",
    ),
    (
        OneTimeCode,
        Strong,
        "einmalcode, einmalpasswort, einmalkennwort, bestatigungscode, verifizierungscode, sicherheitscode, anmeldecode, \
         wiederherstellungscode*, authentifizierungscode, code aus der sms, code per sms, code aus der app, code aus der e mail",
    ),
    (
        SeedPhrase,
        Strong,
        "wiederherstellungsphrase, wiederherstellungssatz, wiederherstellungsworter, seed satz",
    ),
    (
        PrivateKey,
        Strong,
        "privater schlussel, privaten schlussel, privatschlussel",
    ),
    (Login, Strong, "zugangsdaten, anmeldedaten, logindaten"),
    // French.
    (
        Password,
        Strong,
        "mot de passe, mots de passe, phrase de passe, code d acces, mdp",
    ),
    (
        ApiKey,
        Strong,
        "cle api, cle d api, cle secrete, cle d acces",
    ),
    (
        Token,
        Strong,
        "jeton d acces, jeton d api, jeton d authentification, jeton api",
    ),
    (Pin, Strong, "code pin, code confidentiel, code secret"),
    (
        CardNumber,
        Strong,
        "numero de carte, numero de la carte, numero de votre carte, numero carte",
    ),
    (
        CardCode,
        Strong,
        "cryptogramme, code de securite de la carte",
    ),
    (
        OneTimeCode,
        Strong,
        "code de verification, code a usage unique, code de securite, code de confirmation, code recu, code sms, code d authentification, code que nous vous avons envoye, code envoye",
    ),
    (
        SeedPhrase,
        Strong,
        "phrase de recuperation, phrase secrete, phrase de restauration",
    ),
    (PrivateKey, Strong, "cle privee"),
    (
        Login,
        Strong,
        "identifiants de connexion, donnees de connexion",
    ),
    // Spanish.
    (
        Password,
        Strong,
        "contrasena, contrasenia, clave de acceso, clave secreta, palabra de paso",
    ),
    (ApiKey, Strong, "clave api, clave de api, clave de la api"),
    (Token, Strong, "token de acceso"),
    (Pin, Strong, "codigo pin, numero pin, pin de la tarjeta"),
    (
        CardNumber,
        Strong,
        "numero de tarjeta, numero de la tarjeta, numero de su tarjeta, numero de tu tarjeta",
    ),
    (
        CardCode,
        Strong,
        "codigo de seguridad de la tarjeta, codigo cvv",
    ),
    (
        OneTimeCode,
        Strong,
        "codigo de verificacion, codigo de seguridad, codigo de un solo uso, codigo sms, codigo de confirmacion, clave dinamica, codigo de autenticacion, codigo que te enviamos, codigo que le enviamos, codigo que te hemos enviado, codigo que le hemos enviado, codigo enviado, codigo recibido, codigo que recibiste, codigo que ha recibido",
    ),
    (
        SeedPhrase,
        Strong,
        "frase semilla, frase de recuperacion, frase secreta",
    ),
    (PrivateKey, Strong, "clave privada, llave privada"),
    (Login, Strong, "credenciales"),
    // Portuguese.
    (
        Password,
        Strong,
        "senha, palavra passe, palavra chave de acesso",
    ),
    (
        ApiKey,
        Strong,
        "chave api, chave de api, chave da api, chave secreta",
    ),
    (ApiKey, Weak, "chave de acesso"),
    (Token, Strong, "token de acesso"),
    (Pin, Strong, "codigo pin, pin do cartao"),
    (
        CardNumber,
        Strong,
        "numero do cartao, numero de cartao, numero do seu cartao",
    ),
    (
        OneTimeCode,
        Strong,
        "codigo de verificacao, codigo de seguranca, codigo de uso unico, codigo de confirmacao, codigo de autenticacao, codigo recebido, codigo enviado, codigo que enviamos, codigo que voce recebeu",
    ),
    (SeedPhrase, Strong, "frase semente, frase de recuperacao"),
    (PrivateKey, Strong, "chave privada"),
    (Login, Strong, "credenciais, dados de acesso"),
    // Italian.
    (Password, Strong, "parola d ordine, codice di accesso"),
    (
        ApiKey,
        Strong,
        "chiave api, chiave segreta, chiave di accesso",
    ),
    (Token, Strong, "token di accesso"),
    (Pin, Strong, "codice pin, pin della carta"),
    (
        CardNumber,
        Strong,
        "numero della carta, numero di carta, numero carta",
    ),
    (
        OneTimeCode,
        Strong,
        "codice di verifica, codice di sicurezza, codice otp, codice usa e getta, codice di conferma, codice monouso, codice ricevuto, codice inviato, codice che hai ricevuto, codice che ti abbiamo inviato",
    ),
    (SeedPhrase, Strong, "frase di recupero, frase seed"),
    (PrivateKey, Strong, "chiave privata"),
    (Login, Strong, "credenziali"),
    // Dutch.
    (Password, Strong, "wachtwoord*, paswoord, toegangscode"),
    (ApiKey, Strong, "api sleutel, geheime sleutel"),
    (Token, Strong, "toegangstoken"),
    (
        CardNumber,
        Strong,
        "kaartnummer, creditcardnummer, nummer van je kaart",
    ),
    (
        OneTimeCode,
        Strong,
        "verificatiecode, beveiligingscode, eenmalige code, bevestigingscode, inlogcode, sms code, code uit de sms, code die je hebt ontvangen",
    ),
    (SeedPhrase, Strong, "herstelzin"),
    (PrivateKey, Strong, "privesleutel, prive sleutel"),
    (Login, Strong, "inloggegevens"),
    // Polish.
    (Password, Strong, "haslo, hasla"),
    (ApiKey, Strong, "klucz api, klucza api, tajny klucz"),
    (Token, Strong, "token dostepu"),
    (Pin, Strong, "kod pin, kodu pin, numer pin"),
    (CardNumber, Strong, "numer karty, numeru karty"),
    (
        OneTimeCode,
        Strong,
        "kod weryfikacyjny, kodu weryfikacyjnego, kod sms, kod z sms, kod jednorazowy, kod autoryzacyjny, haslo jednorazowe, kod potwierdzajacy, kod ktory otrzymales",
    ),
    (SeedPhrase, Strong, "fraza odzyskiwania, fraza seed"),
    (PrivateKey, Strong, "klucz prywatny"),
    (Login, Strong, "dane logowania, danych logowania"),
    // Russian and Ukrainian.
    (Password, Strong, "парол*"),
    (
        ApiKey,
        Strong,
        "ключ api, api ключ, секретный ключ, ключ доступа, секретний ключ",
    ),
    (Token, Strong, "токен доступа, токен бота, api токен"),
    (Token, Weak, "токен, токена"),
    (
        Pin,
        Strong,
        "пин код, пинкод, пин карты, код карты, pin код",
    ),
    (Pin, Weak, "пин"),
    (
        CardNumber,
        Strong,
        "номер карты, номер вашей карты, номер банковской карты, номер картки",
    ),
    (
        OneTimeCode,
        Strong,
        "код подтверждения, код из смс, код из sms, смс код, sms код, одноразовый код, одноразовый пароль, проверочный код, код безопасности, код пiдтвердження, код підтвердження",
    ),
    (
        SeedPhrase,
        Strong,
        "сид фраза, сид фразу, seed фраза, seed фразу, секретная фраза, фраза восстановления, фразу восстановления, мнемоническая фраза",
    ),
    (
        PrivateKey,
        Strong,
        "приватный ключ, закрытый ключ, приватний ключ",
    ),
    (Login, Strong, "учетные данные, данные для входа"),
    // The word for a password, at least: Czech, Slovak, Swedish, Danish, Norwegian, Finnish, Hungarian,
    // Romanian, Croatian, Slovene, Turkish, Greek, Vietnamese, Indonesian, Arabic, Hebrew, Hindi.
    (
        Password,
        Strong,
        "heslo, losenord, losenordet, adgangskode, kodeord, passord, salasana, jelszo, jelszava*, parola de acces, parola ta, \
         lozinka, geslo, sifre, sifreniz*, sifresi, parolaniz*, κωδικος προσβασης, κωδικο προσβασης, συνθηματικο, mat khau, kata sandi, \
         كلمة المرور, كلمة السر, סיסמה, סיסמא, पासवर्ड",
    ),
    (
        OneTimeCode,
        Strong,
        "overovaci kod, engangskode, engangskod, vahvistuskoodi, dogrulama kodu, onay kodu, ma xac minh, kode verifikasi, رمز التحقق, קוד אימות",
    ),
    (ApiKey, Strong, "api klic, api anahtari, api nyckel"),
    (
        CardNumber,
        Strong,
        "kart numara*, cislo karty, kortnummer, nomor kartu",
    ),
];

/// The same in scripts that don't separate words, searched in a text without its spaces.
pub(super) const UNSPACED: &[(Secret, &str)] = &[
    // Chinese, in simplified and traditional letters.
    (
        OneTimeCode,
        "验证码, 驗證碼, 动态码, 動態碼, 动态密码, 一次性密码, 一次性密碼, 校验码, 短信码, 恢复码, 备用码",
    ),
    (SeedPhrase, "助记词, 助記詞, 恢复短语, 種子短語, 种子短语"),
    (PrivateKey, "私钥, 私鑰, 金鑰檔案"),
    (
        ApiKey,
        "api密钥, api金鑰, api密鑰, api钥匙, apikey, 访问密钥, 密钥, 密鑰",
    ),
    (Token, "访问令牌, 存取權杖, api令牌, 令牌, 權杖"),
    (
        Pin,
        "pin码, pin碼, 个人识别码, 支付密码, 支付密碼, 交易密码, 取款密码",
    ),
    (CardNumber, "银行卡号, 銀行卡號, 信用卡号, 信用卡號, 卡号"),
    (CardCode, "安全码, 卡片安全码"),
    (Password, "密码, 密碼, 口令, 通行碼"),
    (Login, "登录凭证, 登录凭据, 账号密码"),
    // Japanese.
    (
        OneTimeCode,
        "認証コード, 確認コード, ワンタイムパスワード, ワンタイムコード, 認証番号, リカバリーコード, バックアップコード",
    ),
    (
        SeedPhrase,
        "シードフレーズ, リカバリーフレーズ, ニーモニック, 復元フレーズ",
    ),
    (PrivateKey, "秘密鍵"),
    (ApiKey, "apiキー, アクセスキー, シークレットキー"),
    (Token, "アクセストークン, apiトークン, トークン"),
    (Pin, "暗証番号, pinコード"),
    (CardNumber, "カード番号"),
    (CardCode, "セキュリティコード"),
    (Password, "パスワード, パスフレーズ, 合言葉"),
    (Login, "ログイン情報"),
    // Korean.
    (
        OneTimeCode,
        "인증번호, 인증코드, 일회용비밀번호, 확인코드, 복구코드",
    ),
    (SeedPhrase, "시드구문, 복구구문, 시드문구, 니모닉"),
    (PrivateKey, "개인키, 비밀키, 프라이빗키"),
    (ApiKey, "api키, 액세스키"),
    (Token, "액세스토큰, api토큰, 토큰"),
    (Pin, "핀번호, pin번호"),
    (CardNumber, "카드번호"),
    (CardCode, "보안코드, cvc번호"),
    (Password, "비밀번호, 패스워드, 암호"),
    // Thai.
    (Password, "รหัสผ่าน"),
    (OneTimeCode, "รหัสยืนยัน, รหัสotp"),
];
