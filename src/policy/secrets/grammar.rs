//! The words around the name of a secret that tell whether it is asked for or only spoken of.
//!
//! Languages share the lists: what is a preposition in one is no word in most others.

use super::Secret;
use super::Secret::{ApiKey, CardCode, OneTimeCode, Pin, PrivateKey, SeedPhrase, Shared};

/// The parts that a word can have in a sentence; in several languages it may have several.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Head,
    Trailer,
    Stop,
    Finite,
    Lost,
    Breaker,
    Void,
    And,
    Making,
    Verb,
    Lead,
    Any,
    Why,
    Never,
    Ordinary,
    Example,
    BareCode,
    BareKey,
    BarePhrase,
    /// What masks are worn for: the words of which compounds are made.
    Known,
}

/// Which words have which part. A `*` at the end of a word stands for its endings.
pub(super) const PARTS: &[(Part, &str)] = &[
    (Part::Head, HEADS),
    (Part::Trailer, TRAILERS),
    (Part::Stop, STOPS),
    (Part::Finite, FINITE),
    (Part::Lost, LOST),
    (Part::Breaker, BREAKERS),
    (Part::Void, VOID),
    (Part::And, AND),
    (Part::Making, MAKING),
    (Part::Verb, VERBS),
    (Part::Lead, LEADS),
    (Part::Any, ANY),
    (Part::Why, WHY),
    (Part::Never, NEVER),
    (Part::Ordinary, ORDINARY),
    (Part::Example, EXAMPLES),
    (Part::BareCode, BARE_CODE),
    (Part::BareKey, BARE_KEY),
    (Part::BarePhrase, BARE_PHRASE),
];

/// After it, as the next word of the same clause, they are what the field is really about: the
/// `policy` of a `password policy`, the `name` of an `API key name`.
const HEADS: &str = "about account address age alg algo algorithm app appears assignment auth authentication \
    bag balance based bits box brand bucket budget button category change changed changes chart city color colour column \
    comment company complexity confirmed contract cost count country counter date days default description dialog documentation \
    domain email endpoint env environment error events expir* expires expiry explanation family feature file filename fingerprint \
    flow folder form free generator group had has hash header help hint history holder host hours id identifier ids image index \
    info issuer join kind label language last leak leaked length less level library lifetime limit limits link list location login \
    mail manager managers max min minutes mode model month name names network note number owner page param parameter \
    path pattern permission* phone plan policies policy position prefix price product project property protected protection \
    provider purpose question rate reason recipient ref reference regex region rejected reminder rename renewal replacement request \
    requirements reset reuse role rotation rule rules santa scope scopes screen sequence server setting settings size source \
    standard state statement status storage store strategy strength style suffix supply symbol table tags template test text \
    ticker ticket time timeout title topic tracking ttl type types uri url usage used user username vault vendor version was were \
    widget year \
    richtlinie* regel* lange starke liste schutz wechsel anderung speicher tresor qualitat vorgabe* vergessen zurucksetzen andern hinweis manager wurde wird name dauer \
    oublie oubliee perdu expire olvidada olvidado esquecida dimenticata vergeten zapomniane \
    reklamowe wyborcze название имя";

/// After it they change nothing: `password confirmation`, `API key value`.
const TRAILERS: &str = "again confirm confirmation confirmed current dev entry field here input live new old please prod \
    production repeat repeated retype s sandbox secret staging string text token value verify below now \
    bestatigen bestatigung eingeben eintragen angeben wiederholen wiederholung hier ein an neu alt \
    ici confirmez aqui qui hier girin giriniz";

/// After it they begin what only says more: `password for the mailbox`.
const STOPS: &str = "and as at by for from if in of on or so that to when which with you your \
    aus bei der des die das fur ihrer ihres deiner deines im mit oder und von zu zum zur \
    avec de des du et ou par pour sur votre \
    con de del en o para por su tu y \
    com da das do dos e na no ou para sua seu \
    dei del della di e nel o per tuo \
    en of op met van voor \
    dla do i lub od z \
    в для и из или к на от с";

/// The same, with a verb: `the password is …`.
const FINITE: &str =
    "can is must needs should will ist muss kann est doit es debe deve e moet jest";

/// Before it they say that it is not there or not wanted, as the last word or the one before.
const LOST: &str = "forgot forgotten forget forgets lost reset resetting recover recovering hide show no not without \
    wrong incorrect invalid expired leaked public hashed remember never compromised stolen \
    vergessen falsches kein keine ohne zurucksetzen \
    oublie perdu sans mauvais incorrect reinitialiser \
    olvido olvide olvidaste olvidado sin restablecer recuperar incorrecta \
    esqueceu esqueci perdeu sem redefinir recuperar incorreta \
    dimenticato dimenticata senza reimposta recuperare \
    vergeten zonder \
    zapomniales zapomnialas zapomniane bez zresetuj \
    забы* сброс* восстанов* неверн* без \
    unuttu*";

/// Before it they make it a part of a sentence about something else: `name of the secret`, `why the
/// access token is rotated`.
const BREAKERS: &str = "about after against at because before between by for from how if in into of on once over per since \
    than that through to under until via when where whether which while who whose why with without does did \
    create creates creating created delete deletes deleting deleted generate generates generating generated get gets has have issue \
    issued keep list lists make manage name names protect read receive received renew replace revoke revokes rotate rotates rotating \
    send sends sending sent share shares sharing shown store stores stored update updates updating uses using was were expires \
    als an auf bei durch fur ist mit nach ob uber um von vor wann warum welche welches welcher wenn wie wo wofur zu zum zur wird wurde senden erstellen \
    afin avant avec chez comme dans de des du depuis lors par pour quand que quel quelle sur envoyer creer \
    al con cual cuando de del desde donde en para por que quien segun sobre enviar crear \
    ao com como da do dos em na no nas nos onde pela pelo quando quem enviar criar \
    che chi col come da dal dei del della delle di dove nel nella per quando quale sul sulla inviare creare \
    aan bij door hoe met naar om op over te tot van voor waar waarom wanneer welke wie verzenden maken \
    dla do jak kiedy ktory ktora na od po przez przy w z za ze \
    без в во где для до за из к как какой какая когда кто на над о об от по под при про с со у что";

/// What may stand before them without saying what the field is about.
const VOID: &str = "again a an confirm confirmation confirmed copy content contents enter exact full new of repeat repetition \
    retype the value your \
    bestatigung wiederholung wert confirmation repetition valeur confirmacion repeticion valor campo confirmacao repeticao \
    conferma ripeti valore bevestiging herhaal waarde potwierdzenie powtorz wartosc подтверждение повтор значение";

/// They begin another thing of the same kind: `user name and password`.
const AND: &str = "and or plus und oder et ou y o e i lub en og och и или ve";

/// Before a password they are what a person does with it, and breakers before everything else.
const MAKING: &str = "create creates creating erstellen creer crear criar creare maken";

/// They ask a person to type.
const VERBS: &str = "enter fill give input insert need paste provide reply submit supply type tell me us copy write respond share replying entering typing pasting providing submitting \
    angeben eingeben eingabe eintippen eintragen gib geben nenne nennen tippe tippen schreiben schicke einfugen teilen teile benotige brauche \
    communiquez donnez donner entrer entrez fournir fournissez indiquer indiquez ecrivez renseignez saisir saisissez tapez collez envoyez besoin \
    digita digite escriba escribe facilite indica indique ingresa ingrese introduce introduzca proporciona proporcione pega pegue teclee envie necesito necesitamos \
    cole forneca informe insira introduza preencha preciso precisamos \
    digiti fornisci immetti incolla indica inserire inserisca inserisci scrivi serve servono \
    geef invoeren invullen plak typ vul voer \
    podac podaj przeslij wklej wpisac wpisz wprowadz \
    введите ввести введи вставьте напишите отправьте пришлите сообщите укажите введiть введіть \
    girin giriniz girin yazin zadejte wpisz adja skriv ange indtast syota masukkan nhap";

/// Questions to which the answer is the thing itself: `what is your password`, and not `what is a
/// password`.
pub(super) const QUESTIONS: &str = "what is, what s, whats, what are, wie lautet, wie lauten, wie ist, was ist, quel est, quelle est, \
    quels sont, cual es, cuales son, qual e, quais sao, quali sono, wat is, wat zijn, jakie jest, jaki jest, jakie masz, \
    какой у вас, какой у тебя, какой ваш, какой твой, какие у вас";

/// What makes it another question again.
const ANY: &str = "a an any ein eine un una une um uma uno een jakies";

/// Questions that are about something else in any case.
const WHY: &str = "why how when where who whose warum weshalb wann wo wer pourquoi comment quand cuando donde como \
    quando onde perche dove waarom wanneer waar hoe dlaczego kiedy gdzie почему зачем когда где";

/// What may follow the verb: `reply with the code`, `preciso da sua senha`.
const LEADS: &str = "with in of mit von da de di do met";

/// They turn a request into its opposite.
const NEVER: &str = "don dont never no not t nicht nie niemals kein keine ne pas jamais no nunca nao non mai niet nooit nie \
    не никогда never";

/// Fields that are plainly about something else, when the message alone asks for a secret.
const ORDINARY: &str = "address age amount area birth birthday branch channel city comment company country currency customer date \
    day description domain email endpoint feedback file firstname folder gender host hostname id item label language lastname link \
    location mail message mobile month name nick nickname note notes number* order organization path phone place port postal postcode \
    project quantity query question reason region repo repository room server street subject summary tag tags team telephone \
    ticket time timezone title topic uri url user username website year zip project confirmation \
    adresse benutzer benutzername datum grund kommentar land nachricht ort postfach strasse telefon telefonnummer \
    ville pays rue nom prenom courriel identifiant utilisateur telephone motif \
    nombre correo ciudad calle pais usuario telefono motivo direccion \
    nome cidade rua endereco usuario telefone cpf \
    cognome citta via indirizzo utente telefono \
    naam adres stad gebruiker gebruikersnaam telefoon \
    imie nazwisko miasto ulica uzytkownik telefon \
    адрес имя фамилия город улица почта телефон логин слова";

/// Names that say nothing by themselves, and what they stand for when the message speaks of that.
pub(super) const BARE: &[(Part, &[Secret])] = &[
    (Part::BareCode, &[OneTimeCode, Pin, CardCode]),
    (Part::BareKey, &[ApiKey, PrivateKey, Shared]),
    (Part::BarePhrase, &[SeedPhrase]),
];

const BARE_CODE: &str = "code codes codigo codice kod код kode koodi digits";

const BARE_KEY: &str = "key keys schlussel cle clave chave chiave sleutel klucz ключ";

const BARE_PHRASE: &str = "phrase phrases words wort worter frase fraza фраза";

/// What excuses a weak phrase with this word: words around it that tell what it means there. Whole words
/// only.
pub(super) const EXCUSES: &[(&str, &str)] = &[
    (
        "token",
        "bos budget cls sep coin coins completion context contract continuation crypto css cursor defi delimiter design dex embedding eos erc eth \
         ethereum exchange governance gpt lexer liquidity llm mask mint model next nft nlp pad page pagination parser prompt sequence solana stake \
         staking start stop swap symbol sync ticker tokens unk usdc usdt vocabulary chain blockchain word",
    ),
    (
        "pin",
        "address area arduino board city chip color colour connector dashboard delivery district dependency gpio header label led \
         location map marker microcontroller package pinterest plz post postal postcode postleitzahl raspberry shipping sidebar \
         sensor servo solder state version village zip",
    ),
    (
        "code",
        "booking bug build coupon country discount gift html invitation invite product promo promotion python referral source voucher zip",
    ),
    (
        "pincode",
        "address area city delivery district post postal shipping state village zip india",
    ),
    (
        "secret",
        "agent ingredient message number recipe santa word",
    ),
    (
        "pass",
        "boarding bus day event fail gate guest hall lift mountain museum press rail season ski ticket train transit travel yards",
    ),
    ("pwd", "cwd directory dir folder path working"),
    ("pw", "power watt watts petawatt playwright"),
    ("psk", "modulation phase shift"),
    ("tan", "color colour leather skin shade sun beige brown"),
    ("ssh", "public pub fingerprint ed 25519"),
    ("gpg", "public pub fingerprint id"),
    ("pgp", "public pub fingerprint id"),
    (
        "digit",
        "area box coupon country course door gate lock locker product zip postal unit",
    ),
    (
        "credentials",
        "academic academy badge degree education journalist medical professional qualifications",
    ),
    ("токен", "монета монеты символ крипто"),
    ("chave", "nf nfe nota fiscal"),
    (
        "mnemonic",
        "shortcut menu keyboard opcode instruction assembly",
    ),
    ("storage", "local browser"),
    ("account", "crm"),
];

/// What tells in the words of a field that a card is none to pay with.
pub(super) const OTHER_CARDS: &str = "bibliothek bonus business club fidelite gesundheit gift graphics health id identity index insurance \
    kranken krankenversicherung kunden kundenkarte library loyalty member membership memory mitglied network report sd sim student trello \
    versicherung video vip biblioteca socio tessera bibliotheque adherent";

/// Before a clause they make it an example.
const EXAMPLES: &str =
    "eg example instance beispiel exemple ejemplo exemplo esempio voorbeeld przyklad например";

/// Words that are hidden in letters of another alphabet alone.
pub(super) const MASKED: &[&str] = &[
    "api", "card", "code", "cvc", "cvv", "key", "otp", "pass", "phrase", "pin", "secret", "seed",
    "token",
];

/// In scripts without spaces: what may follow, as what the text is really about.
pub(super) const UNSPACED_HEADS: &str = "的 策略 强度 強度 长度 長度 提示 找回 重置 重設 规则 規則 有效期 过期 管理 名称 名稱 类型 類型 数 桶 符号 发送 送到 保护 \
    の長さ の強度 の有効期限 のヒント の名前 の種類 の変更 の再設定 のリセット の数 の送信 ポリシー リセット 再設定 変更 ヒント 管理 を忘れ を送信 を送る を受け \
    をリセット を再設定 を変更 をお忘れ をお送り が届 の有効 名 数 なし \
    정책 길이 강도 힌트 찾기 재설정 초기화 변경 만료 관리 이름 수 개수 를잊 를받을 를보낼 를재설정 를변경 을보낼 을받을 을받으실 를받으실 의 화 없이 \
    ไม";

/// The same, before.
pub(super) const UNSPACED_LOST: &str = "忘记 忘記 忘了 重置 重設 找回 修改 没有 无 错误的 会员 會員 图书 图书馆 学生 停止 \
    会員 図書 図書館 学生 忘れた 停止 \
    회원 학생 잊어버린 잘못된 정지";

/// The same: words that ask a person to type.
pub(super) const UNSPACED_VERBS: &str = "输入 輸入 填写 填寫 提供 粘贴 貼上 告诉 告知 发给 回复 是什么 是多少 是什麼 \
    入力 記入 貼り付け 教えて ご記入 お知らせ 返信 は何 をどうぞ \
    입력 알려 붙여 적어 제공 무엇 뭔가 \
    กรอก ใส ระบุ";
