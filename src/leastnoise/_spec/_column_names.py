"""Guess the content of a column from its name, in several languages.

The functions see only names, no values. A name is split into words without accents and capitals:
``BENE_ID``, ``beneId`` and ``bene id`` are ``bene`` and ``id``. A compound word such as
``kundennr`` is split if the module knows both parts.
"""

import re
import unicodedata
from functools import cache
from itertools import chain


def _word_set(text: str) -> frozenset[str]:
    """Return the set of the words in ``text``."""
    return frozenset(text.split())


# Words for "identifier" that follow or precede the identified thing.
_IDENTIFIES = _word_set(
    """
    id ids uid uuid guid nr nbr no num number nummer numero numer key code cod codigo codice
    kod ident identifier identifiant identificador identificatore identification kennung
    kennziffer schluessel schlussel sk pk fk hash token ref reference referenz referencia
    riferimento pseudonym pseudonyme tunnus nro
    broj cislo 号 番号
    """
)
# The words of `_IDENTIFIES` that rarely mean anything else. A number of rooms and a postal code are
# no identifiers.
_SURELY_IDENTIFIES = _word_set(
    """
    id ids uid uuid guid nr nbr nummer key ident identifier identifiant identificador
    identificatore kennung schluessel schlussel sk pk fk hash pseudonym pseudonyme tunnus
    """
)
_BESIDE_PERSONS = _word_set(
    """
    unique anon anonymous anonymised anonymized pseudo pseudonymous pseudonymised
    pseudonymized encrypted encr hashed masked internal external study research global
    master main primary deidentified enterprise dim new old the my a de del des du d la le
    el l der die das do da di van
    """
)
_PERSONS = _word_set(
    """
    person individual patient pat customer cust client user member mbr employee emp
    respondent participant student stud pupil learner beneficiary bene insured insuree
    enrollee enrolee policyholder citizen resident taxpayer voter subscriber passenger
    visitor donor inmate prisoner offender defendant victim applicant candidate claimant
    worker cardholder borrower proband consumer shopper rider reviewer child infant baby human
    kunde kunden kundin patienten patientin personen nutzer benutzer mitglied mitglieder mitglieds
    mitarbeiter versicherte versicherter versicherten versichert teilnehmer probanden
    schueler schuler studierende studierenden studenten buerger burger einwohner
    beschaeftigte beschaftigte beschaftigten arbeitnehmer befragte befragten bewohner usager
    utilisateur adherent assure beneficiaire salarie employe eleve etudiant personne
    individu repondant habitant abonne societaire citoyen ben paciente cliente usuario socio
    miembro empleado trabajador persona individuo alumno estudiante encuestado participante
    beneficiario asegurado afiliado ciudadano paziente utente membro dipendente assistito
    studente partecipante cittadino assicurato utilizador pessoa funcionario empregado
    cidadao segurado klant gebruiker persoon medewerker werknemer deelnemer leerling
    verzekerde pasient kund anvandare bruker bruger medlem
    anstalld ansatt elev deltagare deltaker deltager medarbejder borger pacjent klient osoba
    uzytkownik pracownik uczen ubezpieczony potilas asiakas henkilo kayttaja oppilas pacient
    zakaznik hasta musteri kisi kullanici пациент клиент пользователь
    患者 顧客 客户 用户 会員 会员 学生
    """
)
# Persons who serve others. A row that names two persons belongs to the other one.
_STAFF = _word_set(
    """
    employee emp worker mitarbeiter arbeitnehmer beschaeftigte beschaftigte beschaftigten
    salarie employe empleado trabajador dipendente funcionario empregado medewerker
    werknemer anstalld ansatt medarbejder pracownik visitor
    """
)
# Numbers that identify a person by law or within an institution.
_NUMBERS_OF_PERSONS = _word_set(
    """
    ssn mrn empi nhs nino upn uln hicn ptid usubjid subjid pidp nir psa personnummer
    personnr cpr fnr fodselsnummer fodselsnr hesid enrolid personalnummer bsn pesel cpf curp
    dni kvnr svnr ahv ahvnr aadhaar sozialversicherung versichertennummer rodnecislo
    """
)
_PHRASES = tuple(
    map(
        _word_set,
        (
            "social security",
            "securite sociale",
            "seguridad social",
            "cod fiscale",
            "codice fiscale",
            "rodne cislo",
            "national id",
            "passport no",
            "passport number",
        ),
    )
)
# A column with exactly this name identifies persons; `client` and `user` can also be programs.
_PERSONS_ALONE = _word_set(
    """
    person patient customer respondent participant kunde kundin paciente paziente
    """
)
# Single words that denote a number or a flag rather than a person.
_NO_PERSONS_ALONE = _word_set("child infant baby human visitor resident smoker")
# What a row may describe other than a person. Identifiers of such things differ in every row.
_RECORDS = _word_set(
    """
    encounter claim clm response spell visit order transaction trans txn trip ride record
    rec row event session admission adm hadm episode stay invoice receipt booking
    reservation ticket case request message comment post review log line entry purchase
    appointment prescription rx sample specimen observation obs survey interview
    questionnaire submission application incident accident crime arrest call journey rental
    serial seq sequence index unnamed rowname rownames fall aufenthalt beleg rechnung
    bestellung auftrag buchung antwort fragebogen besuch vorgang lfd sejour commande facture
    reponse visite passage pedido factura compra venta visita respuesta encuesta atencion
    episodio ricovero ordine fattura risposta bestelling factuur antwoord opname besok ordre
    """
)
_CLASSES = _word_set(
    """
    type typ tipo class klasse classe category kategorie categorie categoria status state
    group gruppe groupe grupo kind level grade disposition reason method mode rate ratecode
    source race gender sex sexe sexo band version
    """
)
# Words that denote identifiers of persons or devices without a word for "identifier".
_ALSO_IDENTIFY = _word_set(
    """
    email msisdn imei imsi ip cookie seqn eid pid cid hhid desynpuf lopnr username userhash msno
    pernum idauniq
    """
)
# Words that end like an identifier and are none, and numbers of places and times.
_ENDS_LIKE_AN_ID = _word_set(
    """
    paid unpaid prepaid valid invalid grid covid solid fluid liquid humid acid void hybrid rapid
    medicaid steroid thyroid madrid hausnummer telefonnummer zimmernummer
    """
)
_NUMBERED_PLACES = _word_set(
    "house room flight line page version floor period week day month quarter street building"
)
# Things whose number is an identifier, in names such as `PRVDR_NUM` and `num_sinistre`. For other
# things, such as education and rooms, it is a number.
_NUMBERED_THINGS = _word_set(
    """
    prvdr provider vendor supplier account acct compte cuenta conto policy police poliza polizza
    polis vertrag contract contrat contrato contratto claim schaden sinistre siniestro sinistro
    loan invoice order product item store agent broker adjuster expediente pratica
    """
)
_NUMBER_WORDS = _word_set("no num nr nro nbr number numero nummer")
# Things that belong to one person or to several. With a number, they may be the unit.
_NEAR_PERSONS = _word_set(
    """
    account acct household konto haushalt subject subj menage hogar family device panelist panellist
    loyalty card iban dossier matricule matricola tessera rut handle login nickname npi
    """
)
_FREE_TEXTS = _word_set(
    """
    name names fullname firstname lastname surname nachname vorname nom prenom nombre
    apellido apellidos cognome sobrenome naam address adresse direccion indirizzo endereco
    adres street strasse rue email mail phone telephone telefon telefono mobile fax url uri
    website link description beschreibung descripcion descrizione descricao omschrijving
    comment comments kommentar commentaire comentario bemerkung note notes notiz remark
    remarks text message body referrer referer photo image geometry geom wkb wkt
    """
)
# Names of things usually form short lists. A name without a thing usually belongs to a person.
_NAMES = _word_set("name names nom nombre naam text note notes message")

_DAYS = _word_set(
    """
    date day datum data dato dat dt datetime timestamp ts fecha jour dia giorno dob born
    bought ordered created updated zeitpunkt zeitstempel aufnahmedatum entlassdatum
    geburtsdatum
    """
)
_TIMES = _word_set("time zeit day heure hora ora tijd")
# The last words of column names such as `hired` and `last_seen`, which are days on which something
# happened. Words such as `closed` and `delivered` are not in the list, because they name a flag as
# often as a day.
_EVENTS = _word_set(
    """
    hired rehired joined admitted discharged issued posted published launched founded modified
    changed edited scheduled arrived departed started ended seen login logout signup arrival
    departure expires expiry expiration deadline birthday birthdate dod since until start begin
    end eintritt austritt beginn ende geburtstag stichtag faelligkeit faellig eingestellt
    erstellt geaendert debut fin embauche naissance inicio nacimiento ingreso egreso inizio
    nascita assunzione begindatum einddatum
    """
)
_BIRTHS = _word_set(
    """
    birth born dob birthday birthdate geburt geburtsdatum naissance nacimiento nascita
    nascimento geboorte fodt
    """
)
_AGES = _word_set("age alter edad eta idade leeftijd alder ika wiek")
_NOT_IN_YEARS = _word_set("group band class days months gruppe klasse tage monate")
# The last words of column names such as `age_group`, whose values are ranges of numbers: texts such
# as 15-24. In other languages it is the first word, such as `tranche_age`.
_GROUPED_AT_THE_END = _word_set(
    "group grp band bracket class category cat range bucket bin tier segment cohort gruppe klasse"
)
_GROUPED_AT_THE_START = _word_set("tranche classe groupe categorie grupo categoria fascia rango")
_WHOLES = _word_set(
    """
    year jahr annee ano anno anzahl hours days weeks children rooms persons number num count
    nb nombre numero age alter edad
    """
)
_SMALL_COUNTS = _word_set(
    """
    children kids kinder enfants hijos figli siblings sibsp parch rooms bedrooms bathrooms
    zimmer pieces persons personen passengers cars autos
    """
)
_LENGTHS_OF_TIME = _word_set("duration dauer duree duracion durata duur los length tenure")
_COUNTS = _word_set("num number count nb nombre numero anzahl hours days weeks n")
_NOT_BELOW_ZERO = re.compile(
    r"income|salary|wage|price|cost|rent|height|weight|umsatz|preis|gehalt|einkommen|fare|distance"
    r"|prix|precio|tax|fee|toll|tip_|charge|revenue|freight|amount|(^|_)amt($|_)|bytes|size"
)
_AMOUNTS = re.compile(
    r"income|salary|wage|(^|_)pay($|_)|(^|_)amt($|_)|price|amount|cost|rent|height|weight|balance"
    r"|loss$|gain$"
    r"|rate$|umsatz|betrag|preis|gehalt|einkommen|fare|distance|montant|prix|importe|precio|bedrag"
)
# Physical quantities and their units. `m` and `g` are not in the list, because they are codes as
# often as units.
_PHYSICAL_QUANTITIES = _word_set(
    """
    mm cm km kg mg lb lbs oz ml mph kmh kwh mass depth width thickness masse gewicht tiefe breite
    largeur profondeur poids peso
    """
)
_FLAGS = _word_set(
    """
    flag flg indicator yn bool is has was ist hat est tiene survived died deceased dead
    alive churn churned fraud smoker subscribed defaulted deleted verified active enabled
    """
)
_CODES = _CLASSES | _word_set("vendor code cd rating stars flag survived pclass")
_NOT_FEW_CODES = _word_set(
    """
    zip postal postcode plz icd hcpcs cpt drg ghm country county region municipality nuts
    naics sic isco product item sku diagnosis diag dgns procedure zone location
    """
)
_PARTS_OF_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+")


@cache
def split_column_name(name: str) -> tuple[str, ...]:
    """Split a column name into words, without accents, in lower case.

    >>> (
    ...     split_column_name("BeneficiaryID"),
    ...     split_column_name("kunden_nr"),
    ...     split_column_name("n° assuré"),
    ... )
    (('beneficiary', 'id'), ('kunden', 'nr'), ('no', 'assure'))
    """
    spelled = re.sub("n[°º]", "no ", name.replace("ß", "ss"), flags=re.IGNORECASE)
    decomposed = unicodedata.normalize("NFKD", spelled)
    bare = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    words = [word.lower() for word in _PARTS_OF_WORDS.findall(bare)]
    return tuple(chain.from_iterable(_split_identifier(word) for word in words))


def _split_identifier(word: str) -> tuple[str, ...]:
    """Split a word such as ``patientid`` into ``patient`` and ``id``."""
    entity_words = _PERSONS | _NUMBERS_OF_PERSONS | _RECORDS | _NUMBERED_THINGS | _NEAR_PERSONS
    if word in entity_words | _IDENTIFIES | _BESIDE_PERSONS or len(word) < 4:
        return (word,)
    for identifies in sorted(_IDENTIFIES - {"n"}, key=len, reverse=True):
        before = word.removesuffix(identifies)
        after = word.removeprefix(identifies)
        if before != word and before in entity_words:
            return before, identifies
        if after != word and after in entity_words:
            return identifies, after
    return (word,)


def names_person(name: str) -> bool:
    """Return whether a column name denotes the person to whom a row belongs.

    >>> [
    ...     names_person(name)
    ...     for name in ("id_patient", "BENE_ID", "kundennr", "encounter_id", "VendorID")
    ... ]
    [True, True, True, False, False]
    """
    words = split_column_name(name)
    if any(phrase <= {*words} for phrase in _PHRASES):
        return True
    has_id = not _SURELY_IDENTIFIES.isdisjoint(words)
    entity_words = [
        word.removesuffix("s") if has_id and word.removesuffix("s") in _PERSONS else word
        for word in words
        if not word.isdecimal() and word not in _IDENTIFIES and word not in _BESIDE_PERSONS
    ]
    if not entity_words or not _PERSONS.union(_NUMBERS_OF_PERSONS).issuperset(entity_words):
        return False
    return (
        not _IDENTIFIES.isdisjoint(words)
        or not _NUMBERS_OF_PERSONS.isdisjoint(entity_words)
        or (len(words) == 1 and words[0] in _PERSONS_ALONE)
    )


def names_staff(name: str) -> bool:
    """Return whether a column name denotes staff members.

    >>> names_staff("employee_id"), names_staff("customer_id")
    (True, False)
    """
    return not _STAFF.isdisjoint(split_column_name(name))


def looks_like_identifier(name: str) -> bool:
    """Return whether a column name may denote an identifier.

    >>> [
    ...     looks_like_identifier(name)
    ...     for name in ("VendorID", "PRVDR_NUM", "num_poliza", "type_id", "num_claims")
    ... ]
    [True, True, True, False, False]
    """
    words = split_column_name(name)
    if names_person(name):
        return True
    if not _CLASSES.isdisjoint(words):
        return False
    if words:
        ends = {words[0], words[-1]}
    else:
        ends = set()
    near_persons = not _NEAR_PERSONS.isdisjoint(words)
    is_person_alone = len(words) == 1 and words[0] in _PERSONS - _NO_PERSONS_ALONE
    last = words[-1] if words else ""
    # In one word: fullvisitorid, idno.
    is_glued = len(last) > 3 and last.endswith(("id", "nr", "nummer", "idno"))
    is_number = len(words) > 1 and last in {"number", "no", "numero"}
    if not _NUMBERED_THINGS.isdisjoint(words):
        is_number |= not _NUMBER_WORDS.isdisjoint(ends)
    return (
        is_person_alone
        or (is_glued and last not in _ENDS_LIKE_AN_ID)
        or (is_number and _NUMBERED_PLACES.isdisjoint(words))
        or not _SURELY_IDENTIFIES.isdisjoint(ends)
        or not _ALSO_IDENTIFY.isdisjoint(words)
        or (near_persons and (len(words) == 1 or not _IDENTIFIES.isdisjoint(words)))
    )


def names_row_identifier(name: str) -> bool:
    """Return whether a column name denotes row identifiers, as in `order_id`.

    >>> [
    ...     names_row_identifier(name)
    ...     for name in ("CLM_ID", "id", "order_no", "order_date", "store_id")
    ... ]
    [True, True, True, False, False]
    """
    words = [word for word in split_column_name(name) if not word.isdecimal()]
    entity_words = [word for word in words if word not in _IDENTIFIES | _BESIDE_PERSONS]
    if not entity_words:
        return not _SURELY_IDENTIFIES.isdisjoint(words)
    if not _ALSO_IDENTIFY.isdisjoint(words):
        return True
    has_number = not _IDENTIFIES.isdisjoint(words)
    is_row_number = entity_words[0] in {
        "ticket",
        "index",
        "unnamed",
        "serial",
        "rowname",
        "rownames",
        "seq",
    }
    names_records = not _RECORDS.isdisjoint(entity_words) and (_RECORDS | _PERSONS).issuperset(
        entity_words
    )
    return names_records and (has_number or is_row_number)


def names_free_text(name: str) -> bool:
    """Return whether a column name denotes names, addresses or free text.

    >>> [names_free_text(name) for name in ("Name", "ship_address", "store_name", "body_mass_g")]
    [True, True, False, False]
    """
    words = split_column_name(name)
    if not _PHYSICAL_QUANTITIES.isdisjoint(words):
        return False
    free_text_words = _FREE_TEXTS.intersection(words)
    return bool(free_text_words) and (not free_text_words <= _NAMES or len(words) == 1)


def names_age(name: str) -> bool:
    """Return whether a column name denotes ages in years.

    >>> [names_age(name) for name in ("age", "Alter", "age_group", "image")]
    [True, True, False, False]
    """
    words = split_column_name(name)
    return not _AGES.isdisjoint(words) and _NOT_IN_YEARS.isdisjoint(words)


def names_day(name: str) -> bool:
    """Return whether a column name denotes dates or times.

    >>> [names_day(name) for name in ("date_entree", "pickup_time", "time_in_hospital", "hired")]
    [True, True, False, True]
    """
    words = split_column_name(name)
    if not words:
        return False
    days = _DAYS - {"data", "day"}
    return (
        not days.isdisjoint(words)
        or (words[-1] in _EVENTS and not names_flag(name))
        or words[-1] in _TIMES
        or words[-1].endswith(("datum", "datetime"))
        or (len(words) > 1 and (words[-1] in {"at", "on"} or words[0] == "data"))
    )


def names_birth(name: str) -> bool:
    """Return whether a column name denotes dates of birth.

    >>> names_birth("date_of_birth"), names_birth("visit_date")
    (True, False)
    """
    return not _BIRTHS.isdisjoint(split_column_name(name))


def names_groups(name: str) -> bool:
    """Return whether a column name denotes number ranges, as in `age_group`.

    >>> [names_groups(name) for name in ("age_group", "incomeBracket", "group_size", "age")]
    [True, True, False, False]
    """
    words = split_column_name(name)
    return len(words) > 1 and (
        words[-1] in _GROUPED_AT_THE_END or words[0] in _GROUPED_AT_THE_START
    )


def names_whole_number(name: str) -> bool:
    """Return whether a column name denotes whole numbers.

    >>> [
    ...     names_whole_number(name)
    ...     for name in ("num_procedures", "hours-per-week", "house_number_text", "sex")
    ... ]
    [True, True, True, False]
    """
    words = split_column_name(name)
    if not _PHYSICAL_QUANTITIES.isdisjoint(words):
        return False
    whole_numbers = _WHOLES | _SMALL_COUNTS | _LENGTHS_OF_TIME
    return (
        names_age(name)
        or not whole_numbers.isdisjoint([*words, "".join(words)])
        or "time" in words[:-1]
    )


def names_nonnegative_number(name: str) -> bool:
    """Return whether a column name denotes numbers that are never negative.

    >>> [
    ...     names_nonnegative_number(name)
    ...     for name in ("num_procedures", "fare_amount", "year", "balance")
    ... ]
    [True, True, False, False]
    """
    words = split_column_name(name)
    return (
        not (_COUNTS | _LENGTHS_OF_TIME).isdisjoint(words)
        or "time" in words[:-1]
        or not _PHYSICAL_QUANTITIES.isdisjoint(words)
        or bool(_NOT_BELOW_ZERO.search(name.lower()))
    )


def names_amount(name: str) -> bool:
    """Return whether a column name denotes numbers that may have decimals.

    >>> [names_amount(name) for name in ("fare_amount", "CLM_PMT_AMT", "bill_length_mm", "sex")]
    [True, True, True, False]
    """
    is_physical = not _PHYSICAL_QUANTITIES.isdisjoint(split_column_name(name))
    return is_physical or bool(_AMOUNTS.search(name.lower()))


def names_flag(name: str) -> bool:
    """Return whether a column name denotes a yes-or-no value.

    >>> [names_flag(name) for name in ("is_inpatient", "store_and_fwd_flag", "flagship")]
    [True, True, False]
    """
    words = split_column_name(name)
    at_the_start = {"is", "has", "was", "ist", "hat", "est", "tiene"}
    return bool(words) and (
        (words[0] in at_the_start and len(words) > 1)
        or not (_FLAGS - at_the_start).isdisjoint(words)
    )


def names_few_codes(name: str) -> bool:
    """Return whether a column name denotes integer codes of a few classes.

    >>> [names_few_codes(name) for name in ("payment_type", "VendorID", "zip_code")]
    [True, True, False]
    """
    words = split_column_name(name)
    return not _CODES.isdisjoint(words) and _NOT_FEW_CODES.isdisjoint(words)


def names_small_count(name: str) -> bool:
    """Return whether a column name denotes counts of children, rooms or persons.

    >>> [names_small_count(name) for name in ("passenger_count", "children", "num_medications")]
    [True, True, False]
    """
    words = split_column_name(name)
    counted_one = {"passenger", "person", "child", "room", "bedroom"}
    return not _SMALL_COUNTS.isdisjoint([*words, "".join(words)]) or (
        not counted_one.isdisjoint(words) and "count" in words
    )


# Commonly known ranges, by the words of a column name.
_RANGES = (
    ({"month", "monat", "mois", "mes", "mese", "maand"}, (1, 12)),
    ({"weekday", "dow", "wochentag"}, (0, 7)),
    ({"hour", "stunde", "heure", "hora"}, (0, 23)),
    ({"minute"}, (0, 59)),
    ({"quarter", "quartal", "trimestre"}, (1, 4)),
    ({"percent", "percentage", "pct", "prozent"}, (0, 100)),
    ({"latitude", "lat"}, (-90, 90)),
    ({"longitude", "lon", "lng"}, (-180, 180)),
)


def implied_range(name: str) -> tuple[int, int] | None:
    """Return the (lowest, highest) integer that a column name implies, or None.

    >>> implied_range("month"), implied_range("hours-per-week"), implied_range("pay")
    ((1, 12), (0, 168), None)
    """
    words = split_column_name(name)
    if names_age(name):
        return 0, 120
    if {"hours", "week"} <= {*words}:
        return 0, 168
    # A month of something else is a date or a duration.
    listed = [
        ends for entity_words, ends in _RANGES if words and entity_words & {words[-1], words[0]}
    ]
    if listed and len(words) <= 2:
        return listed[0]
    return None
