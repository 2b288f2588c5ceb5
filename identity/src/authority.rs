//! The authority of a cluster: its key, its tokens, and the machines that it admitted, in a folder.
//!
//! ```text
//! keys                      its key and its certificates
//! tokens/<number>           "<hash of the secret> <role> <expiry in Unix seconds>"
//! ended/<number>            "<expiry in Unix seconds>", for tokens that were revoked
//! machines/<machine>        "<role> <time of the join in Unix seconds> +<number of the token> <host name>"
//! nodes/<node>              "<machine> <until>": no other machine gets certificates for it until then
//! revoked/<machine>         "<time in Unix seconds>"
//! ```
//! Each file is written whole or not at all, and a token or a machine is one file: several processes may work
//! in the folder at once, and what one revokes holds for the others from then on. A node is a machine's from
//! its first certificate on. Control stores carry all of it but the keys between the heads of a cluster
//! (`rows.rs`).

use crate::admitted::Admitted;
use crate::keys::{Keys, valid_for};
use crate::private::{at, make_folder, names, random, read, remove, write, write_new};
use crate::rows::{MACHINE_LIFETIME, PARTS, Row, unix};
use crate::subject::number;
use crate::{Anchors, AuthorityHash, Identity, IdentityError, MachineId, NewKey, Role, Subject, Token};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyUsagePurpose, PublicKeyData, SignatureAlgorithm};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HOST_CHARS_MAX: usize = 64;
/// The file of the name.
const NAME: &str = "cluster";
/// The file of the key.
const KEYS: &str = "keys";

/// Signs certificates for one cluster. It reads its key each time, since another process may replace it.
#[derive(Clone, Debug)]
pub struct Authority {
    folder: PathBuf,
    admitted: Arc<Mutex<Admitted>>,
}

/// A token, as the authority lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its number, the second part of its text.
    pub number: u64,
    /// The role of the machines that it admits.
    pub role: Role,
    /// When it expires.
    pub expires: SystemTime,
}

/// A machine that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRecord {
    /// The machine.
    pub machine: MachineId,
    /// Its role.
    pub role: Role,
    /// When it joined.
    pub joined: SystemTime,
    /// The number of the token with which it joined.
    pub token: Option<u64>,
    /// Its host name, as it said.
    pub host: String,
    /// Whether it was shut out.
    pub is_revoked: bool,
}

impl Authority {
    /// The authority in `folder`; a new one if there is none. Several processes that start at once get the
    /// same one.
    ///
    /// # Errors
    /// `Folder`, `Certificate`.
    pub fn load_or_make(folder: &Path) -> Result<Authority, IdentityError> {
        make_folder(folder)?;
        PARTS.iter().try_for_each(|part| make_folder(&folder.join(part)))?;
        if read(&folder.join(KEYS))?.is_none() {
            write_new(&folder.join(KEYS), &Keys::generate()?.to_bytes())?;
        }
        let authority = Authority::load(folder)?;
        authority.name()?;
        authority.forget_over()?;
        Ok(authority)
    }

    /// A name of the authority that stays when its key is replaced; copies of its folder have the same. It is
    /// made of the key that is there when it is first asked for.
    ///
    /// # Errors
    /// `Folder`, `Certificate` if it is damaged.
    pub fn name(&self) -> Result<[u8; 16], IdentityError> {
        let path = self.folder.join(NAME);
        if read(&path)?.is_none() {
            let anchors = self.anchors()?;
            let hash = anchors.former_hash().unwrap_or_else(|| anchors.hash());
            let name = blake3::derive_key("tharsis 2026 name of an authority", &hash.bytes());
            let digits: String = name[..16].iter().map(|byte| format!("{byte:02x}")).collect();
            write_new(&path, digits.as_bytes())?;
        }
        let text = read(&path)?.unwrap_or_default();
        let number =
            std::str::from_utf8(&text).ok().and_then(|text| u128::from_str_radix(text.trim(), 16).ok());
        let number = number.ok_or_else(|| {
            IdentityError::certificate(format!("{} does not hold 32 hexadecimal digits", path.display()))
        })?;
        Ok(number.to_be_bytes())
    }

    /// The authority in `folder`.
    ///
    /// # Errors
    /// `NoAuthority` if there is none, `Folder`, `Certificate`.
    pub fn load(folder: &Path) -> Result<Authority, IdentityError> {
        let authority = Authority { folder: folder.to_owned(), admitted: Arc::default() };
        authority.keys().map(|_| authority)
    }

    /// Its certificates.
    ///
    /// # Errors
    /// `Folder`, `Certificate`.
    pub fn anchors(&self) -> Result<Anchors, IdentityError> {
        self.keys().map(|keys| keys.anchors)
    }

    /// Replaces its key. Certificates and tokens of the former key stay good until [`Authority::retire`], and
    /// those of the new one are good at once: the former one vouches for it.
    ///
    /// # Errors
    /// `Replacing` if a former key has not been retired, `Folder`, `Certificate`.
    pub fn rotate(&self) -> Result<Anchors, IdentityError> {
        let _alone = self.lock()?;
        let keys = self.keys()?;
        if keys.anchors.former.is_some() {
            return Err(IdentityError::Replacing);
        }
        self.put(&keys.successor()?)
    }

    /// Ends the trust in the former key: certificates and tokens of it are good nowhere any more, as soon as
    /// members hear of it. A member that has renewed its certificate since the key was replaced goes on.
    ///
    /// # Errors
    /// `NotReplacing` if there is no former key; `Overlap` if it was replaced less than `overlap` ago;
    /// `Folder`, `Certificate`.
    pub fn retire(&self, overlap: Duration) -> Result<Anchors, IdentityError> {
        let _alone = self.lock()?;
        let keys = self.keys()?;
        if keys.anchors.former.is_none() {
            return Err(IdentityError::NotReplacing);
        }
        let path = self.folder.join(KEYS);
        let replaced = path.metadata().and_then(|file| file.modified()).map_err(at(&path))?;
        // A clock that was set back counts as no time.
        let left = overlap.saturating_sub(replaced.elapsed().unwrap_or_default());
        if !left.is_zero() {
            return Err(IdentityError::Overlap { left });
        }
        self.put(&keys.alone())
    }

    /// Keeps other processes from replacing the key, until the result is dropped: of two that do it at once
    /// one key would be lost, with what it had signed.
    fn lock(&self) -> Result<File, IdentityError> {
        let folder = File::open(&self.folder).map_err(at(&self.folder))?;
        folder.lock().map_err(at(&self.folder))?;
        Ok(folder)
    }

    fn put(&self, keys: &Keys) -> Result<Anchors, IdentityError> {
        write(&self.folder.join(KEYS), &keys.to_bytes())?;
        Ok(keys.anchors.clone())
    }

    fn keys(&self) -> Result<Keys, IdentityError> {
        let bytes = read(&self.folder.join(KEYS))?;
        Keys::from_bytes(&bytes.ok_or_else(|| IdentityError::NoAuthority(self.folder.clone()))?)
    }

    /// Makes a token for machines of this role.
    ///
    /// # Errors
    /// `Folder`.
    pub fn make_token(&self, role: Role, lifetime: Duration) -> Result<Token, IdentityError> {
        let token = Token::random(self.anchors()?.hash())?;
        let expires = unix(SystemTime::now() + lifetime);
        let text = format!("{} {} {expires}", token.secret_hash().to_hex(), role.name());
        write(&self.token_file(token.number), text.as_bytes())?;
        Ok(token)
    }

    /// The tokens that have not expired. Files of expired ones are removed.
    ///
    /// # Errors
    /// `Folder`.
    pub fn tokens(&self) -> Result<Vec<TokenRecord>, IdentityError> {
        let mut found = Vec::new();
        for number in names(&self.folder.join("tokens")).iter().filter_map(|name| number(name)) {
            match self.token(number)? {
                Some((_, record)) if SystemTime::now() < record.expires => found.push(record),
                Some(_) => remove(&self.token_file(number))?,
                None => {}
            }
        }
        Ok(found)
    }

    /// Makes a token useless, here and at heads that hear of it later. Says whether there was one.
    ///
    /// # Errors
    /// `Folder`.
    pub fn revoke_token(&self, number: u64) -> Result<bool, IdentityError> {
        let Some((_, record)) = self.token(number)? else { return Ok(false) };
        let ended = self.folder.join("ended");
        // Folders of earlier releases lack it.
        make_folder(&ended)?;
        write(&ended.join(format!("{number:016x}")), unix(record.expires).to_string().as_bytes())?;
        remove(&self.token_file(number))?;
        Ok(true)
    }

    /// Admits a machine that shows a token: a certificate for its public key, good for a year.
    ///
    /// # Errors
    /// `UnknownToken`, `ExpiredToken`, `TooManyMachines`, `TooManyOfToken`, `Certificate` for a key that is
    /// none, `Folder`.
    pub fn admit(&self, token: &Token, public_key: &[u8], host: &str) -> Result<Vec<u8>, IdentityError> {
        let (secret_hash, record) = self.token(token.number)?.ok_or(IdentityError::UnknownToken)?;
        // Equality of these hashes takes the same time wherever they differ.
        if secret_hash != token.secret_hash() || !self.anchors()?.include(token.authority) {
            return Err(IdentityError::UnknownToken);
        }
        if record.expires <= SystemTime::now() {
            return Err(IdentityError::ExpiredToken);
        }
        let folder = self.folder.join("machines");
        // Until the machine is noted: those that join at once are counted. Another head may pass the bound by
        // what it admits in the same moment.
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        let there: HashSet<MachineId> = names(&folder).iter().filter_map(|name| name.parse().ok()).collect();
        // A file that cannot be read counts for no token.
        admitted.look(there, |machine| self.machine(machine).ok().flatten()?.token);
        admitted.check(token.number, &folder)?;
        let machine = MachineId(u64::from_le_bytes(random()?));
        let subject = Subject { machine, role: record.role, node: None, is_control: false };
        let certificate = self.sign(subject, public_key, MACHINE_LIFETIME)?;
        self.note(subject, token.number, host)?;
        Ok(certificate)
    }

    /// A certificate for a node of a machine that shows its own. The first machine that asks for a node has
    /// it.
    ///
    /// # Errors
    /// `Revoked`, `NotANode`, `NotItsNode`, `Certificate` for a key that is none.
    pub fn renew(
        &self,
        machine: Subject,
        node: u64,
        public_key: &[u8],
        lifetime: Duration,
    ) -> Result<Vec<u8>, IdentityError> {
        if self.is_revoked(machine.machine) {
            return Err(IdentityError::Revoked(machine.machine.to_string()));
        }
        if !machine.role.has_nodes() || machine.node.is_some_and(|own| own != node) {
            return Err(IdentityError::NotANode(machine.role.name()));
        }
        let subject = Subject { node: Some(node), is_control: false, ..machine };
        let certificate = self.sign(subject, public_key, lifetime)?;
        self.claim(node, machine.machine, lifetime)?;
        Ok(certificate)
    }

    /// Gives a node to a machine, or finds that it has it.
    fn claim(&self, node: u64, machine: MachineId, lifetime: Duration) -> Result<(), IdentityError> {
        let (file, row) = (self.node_file(node), Row::owner(node, machine, lifetime));
        if write_new(&file, row.text.as_bytes())? {
            return Ok(());
        }
        let text = read(&file)?.map(|text| String::from_utf8_lossy(&text).into_owned());
        let found = text.map(|text| Row { name: row.name.clone(), text });
        match found {
            Some(found) if found.machine() != Some(machine) => {
                Err(IdentityError::NotItsNode(format!("{node:016x}")))
            }
            Some(found) if found.outlasts(lifetime) => Ok(()),
            _ => write(&file, row.text.as_bytes()),
        }
    }

    /// A new certificate for a machine that shows its own, good for a year from now.
    ///
    /// # Errors
    /// `Revoked`, `NotAMachine` for the certificate of a node, `Certificate` for a key that is none.
    pub fn renew_machine(&self, machine: Subject, public_key: &[u8]) -> Result<Vec<u8>, IdentityError> {
        if self.is_revoked(machine.machine) {
            return Err(IdentityError::Revoked(machine.machine.to_string()));
        }
        if machine.node.is_some() || machine.is_control {
            return Err(IdentityError::NotAMachine);
        }
        self.sign(machine, public_key, MACHINE_LIFETIME)
    }

    /// An identity for a process of the authority's own machine: a head, a control store, a command. Its node
    /// is nobody else's from then on.
    ///
    /// # Errors
    /// `Certificate`, `Folder`.
    pub fn own(
        &self,
        role: Role,
        node: Option<u64>,
        is_control: bool,
        lifetime: Duration,
    ) -> Result<Identity, IdentityError> {
        let key = NewKey::generate()?;
        let anchors = self.anchors()?;
        let subject = Subject { machine: own_machine(anchors.hash()), role, node, is_control };
        let certificate = self.sign(subject, &key.public(), lifetime)?;
        if let Some(node) = node {
            // Not a claim: with another key this machine has another name.
            write(&self.node_file(node), Row::owner(node, subject.machine, lifetime).text.as_bytes())?;
        }
        Ok(key.with(certificate, anchors))
    }

    /// Shuts a machine out: it gets no certificate any more, and control stores refuse its calls. Says
    /// whether the authority had admitted it.
    ///
    /// # Errors
    /// `OwnMachine` for the authority's own, `Folder`.
    pub fn revoke_machine(&self, machine: MachineId) -> Result<bool, IdentityError> {
        let anchors = self.anchors()?;
        if std::iter::once(anchors.hash())
            .chain(anchors.former_hash())
            .map(own_machine)
            .any(|own| own == machine)
        {
            return Err(IdentityError::OwnMachine);
        }
        let is_known = read(&self.folder.join("machines").join(machine.to_string()))?.is_some();
        let now = unix(SystemTime::now()).to_string();
        write(&self.folder.join("revoked").join(machine.to_string()), now.as_bytes())?;
        Ok(is_known)
    }

    /// Whether a machine was shut out.
    #[must_use]
    pub fn is_revoked(&self, machine: MachineId) -> bool {
        self.folder.join("revoked").join(machine.to_string()).exists()
    }

    /// The machines that were admitted, in the order of their numbers.
    ///
    /// # Errors
    /// `Folder`.
    pub fn machines(&self) -> Result<Vec<MachineRecord>, IdentityError> {
        let mut found = Vec::new();
        for machine in names(&self.folder.join("machines")).iter().filter_map(|name| name.parse().ok()) {
            found.extend(self.machine(machine)?);
        }
        Ok(found)
    }

    /// The machine of a node that was given a certificate; none if there is no such node.
    ///
    /// # Errors
    /// `Folder`.
    pub fn machine_of(&self, node: u64) -> Result<Option<MachineId>, IdentityError> {
        let bytes = read(&self.node_file(node))?;
        Ok(bytes.and_then(|bytes| String::from_utf8_lossy(&bytes).split(' ').next()?.parse().ok()))
    }

    /// The nodes of a machine whose certificates may be good.
    ///
    /// # Errors
    /// `Folder`.
    pub fn nodes_of(&self, machine: MachineId) -> Result<Vec<u64>, IdentityError> {
        let mut nodes = Vec::new();
        for node in names(&self.folder.join("nodes")).iter().filter_map(|name| number(name)) {
            if self.machine_of(node)? == Some(machine) {
                nodes.push(node);
            }
        }
        Ok(nodes)
    }

    /// The token with which a machine joined, if it is good still.
    ///
    /// # Errors
    /// `Folder`.
    pub fn token_of(&self, machine: MachineId) -> Result<Option<u64>, IdentityError> {
        let Some(number) = self.machine(machine)?.and_then(|record| record.token) else { return Ok(None) };
        let found = self.token(number)?.filter(|(_, record)| SystemTime::now() < record.expires);
        Ok(found.map(|(_, record)| record.number))
    }

    /// Something that changes when a row is added or removed here.
    #[must_use]
    pub fn rows_stamp(&self) -> [Option<SystemTime>; 5] {
        PARTS.map(|part| self.folder.join(part).metadata().and_then(|folder| folder.modified()).ok())
    }

    /// The rows here that are not over, but for those of these names.
    ///
    /// # Errors
    /// `Folder`.
    pub fn rows(&self, known: &HashSet<String>) -> Result<Vec<Row>, IdentityError> {
        let mut rows = self.all_rows(known)?;
        rows.retain(|row| !row.is_over());
        Ok(rows)
    }

    /// Forgets the rows here that are over.
    ///
    /// # Errors
    /// `Folder`.
    pub fn forget_over(&self) -> Result<(), IdentityError> {
        let rows = self.all_rows(&HashSet::new())?;
        rows.iter().filter(|row| row.is_over()).try_for_each(|row| remove(&self.folder.join(&row.name)))
    }

    fn all_rows(&self, known: &HashSet<String>) -> Result<Vec<Row>, IdentityError> {
        let mut rows = Vec::new();
        for part in PARTS {
            for id in names(&self.folder.join(part)) {
                let name = format!("{part}/{id}");
                // A file that is being written has another name.
                let Some(row) = Row::new(&name, "").filter(|_| !known.contains(&name)) else { continue };
                let Some(bytes) = read(&self.folder.join(&name))? else { continue };
                rows.push(Row { text: String::from_utf8_lossy(&bytes).into_owned(), ..row });
            }
        }
        Ok(rows)
    }

    /// Notes what another head of the cluster noted.
    ///
    /// # Errors
    /// `Folder`.
    pub fn take_row(&self, row: &Row) -> Result<(), IdentityError> {
        let (file, text) = (self.folder.join(&row.name), row.text.as_bytes());
        if let Some(ended) = row.name.strip_prefix("ended/") {
            remove(&self.folder.join("tokens").join(ended))?;
        }
        if !row.name.starts_with("nodes/") {
            return if file.exists() { Ok(()) } else { write_new(&file, text).map(drop) };
        }
        // A node stays with its machine, whoever says otherwise.
        let found = read(&file)?.map(|text| String::from_utf8_lossy(&text).into_owned());
        let found = found.map(|text| Row { name: row.name.clone(), text });
        let stays = |found: &Row| {
            found == row
                || (found.machine() != row.machine() && found.machine().is_some() && !found.is_over())
        };
        if found.as_ref().is_some_and(stays) { Ok(()) } else { write(&file, text) }
    }

    fn node_file(&self, node: u64) -> PathBuf {
        self.folder.join("nodes").join(format!("{node:016x}"))
    }

    fn machine(&self, machine: MachineId) -> Result<Option<MachineRecord>, IdentityError> {
        let Some(bytes) = read(&self.folder.join("machines").join(machine.to_string()))? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut words = text.splitn(3, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (role, joined, rest) = (next(), next(), next());
        let (Ok(role), Ok(joined)) = (role.parse(), joined.parse()) else { return Ok(None) };
        let (token, host) = match rest.strip_prefix('+').and_then(|rest| rest.split_once(' ')) {
            Some((token, host)) => (number(token), host),
            // A machine that joined before tokens were noted.
            None => (None, rest),
        };
        let is_revoked = self.is_revoked(machine);
        let joined = UNIX_EPOCH + Duration::from_secs(joined);
        Ok(Some(MachineRecord { machine, role, joined, token, host: host.to_owned(), is_revoked }))
    }

    fn note(&self, subject: Subject, token: u64, host: &str) -> Result<(), IdentityError> {
        let host: String = host.chars().filter(|c| !c.is_control()).take(HOST_CHARS_MAX).collect();
        let (role, now) = (subject.role.name(), unix(SystemTime::now()));
        let text = format!("{role} {now} +{token:016x} {host}");
        write(&self.folder.join("machines").join(subject.machine.to_string()), text.as_bytes())
    }

    fn token_file(&self, number: u64) -> PathBuf {
        self.folder.join("tokens").join(format!("{number:016x}"))
    }

    fn token(&self, number: u64) -> Result<Option<(blake3::Hash, TokenRecord)>, IdentityError> {
        if read(&self.folder.join("ended").join(format!("{number:016x}")))?.is_some() {
            return Ok(None);
        }
        let Some(bytes) = read(&self.token_file(number))? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let words: Vec<&str> = text.split(' ').collect();
        let &[hash, role, expires] = words.as_slice() else { return Ok(None) };
        let (Ok(hash), Ok(role), Ok(expires)) = (blake3::Hash::from_hex(hash), role.parse(), expires.parse())
        else {
            return Ok(None);
        };
        let expires = UNIX_EPOCH + Duration::from_secs(expires);
        Ok(Some((hash, TokenRecord { number, role, expires })))
    }

    fn sign(
        &self,
        subject: Subject,
        public_key: &[u8],
        lifetime: Duration,
    ) -> Result<Vec<u8>, IdentityError> {
        let public_key = P256Point::new(public_key)?;
        let mut params = CertificateParams::new(subject.names()).map_err(IdentityError::certificate)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        valid_for(&mut params, lifetime);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if subject.node.is_some() || subject.is_control {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        let issuer = self.keys()?.issuer()?;
        let certificate = params.signed_by(&public_key, &issuer).map_err(IdentityError::certificate)?;
        Ok(certificate.der().to_vec())
    }
}

/// The machine of an authority, the same for all its processes. It cannot be revoked.
fn own_machine(authority: AuthorityHash) -> MachineId {
    MachineId(u64::from_str_radix(&authority.short(), 16).unwrap_or_default())
}

/// A public key that somebody else made: a point of the curve P-256, uncompressed.
///
/// Nobody checks that the point lies on the curve: no signature fits a certificate for one that does not.
struct P256Point<'a>(&'a [u8]);

impl<'a> P256Point<'a> {
    fn new(bytes: &'a [u8]) -> Result<P256Point<'a>, IdentityError> {
        // SEC 1, section 2.3.3: the tag of an uncompressed point, then two coordinates of 32 bytes.
        if bytes.len() == 65 && bytes.first() == Some(&4) {
            Ok(P256Point(bytes))
        } else {
            Err(IdentityError::certificate("the public key is not an uncompressed point of P-256"))
        }
    }
}

impl PublicKeyData for P256Point<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

#[cfg(test)]
#[path = "authority_tests.rs"]
pub(crate) mod tests;
