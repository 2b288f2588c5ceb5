//! Connections of a cluster: opened and accepted, in the clear or under TLS, and proved.
//!
//! | trust | for | a connection |
//! |---|---|---|
//! | [`Trust::Secret`] | the user's own machine: loopback addresses | in the clear, proved by a shared secret |
//! | [`Trust::Identity`] | several machines | TLS 1.3, certificates on both sides |
//!
//! This is the one place that decides whether a connection is of the cluster. Under TLS a caller is the
//! machine, in the role and with the node, that its certificate names; what it may then call is in
//! [`crate::rights`].

use crate::caller::{Caller, Who};
use crate::crowds::{Crowds, Turn};
use crate::descriptors::Descriptors;
use crate::message::is_of_machine;
use crate::names::{self, Whose};
use crate::owners::Owners;
use crate::proof::{self, CALLER_WAIT, Claim, PROOF_WAIT, ProofError, Purpose, Reason, Secret};
use crate::revoked::Revoked;
use crate::rights::{Admitted, PortCounts};
use crate::scrape::{self, Pass};
use crate::shares::{Part, Shares};
use crate::within::within;
use hyper_util::rt::TokioIo;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tharsis_identity::{Authority, MachineId, Tls, proof_key, subject_of};
use tharsis_types::NodeId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::rustls::{ClientConnection, ServerConnection, StreamOwned};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint};

pub use tharsis_identity::Called;

/// First byte of a TLS record with a handshake.
const TLS_HANDSHAKE: u8 = 22;

/// Time from the revocation of a machine until its connections are cut.
const CUT_GRACE: Duration = Duration::from_millis(250);

/// By what the members of a cluster know each other.
#[derive(Clone, Debug)]
pub enum Trust {
    /// A certificate of the cluster's authority.
    Identity(Tls),
    /// A secret that all of them share.
    Secret(Secret),
}

/// Credentials that a process shows when it calls others.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// By what it knows them, and they know it.
    pub trust: Trust,
    /// The node that this process is, if it is one.
    pub node: Option<NodeId>,
}

/// The rule by which callers are let in at a port.
#[derive(Clone, Debug)]
pub struct Gate {
    pub(crate) trust: Trust,
    signer: Option<Signer>,
    revoked: Revoked,
    shares: Shares,
    per_machine_max: usize,
    pub(crate) crowds: Crowds,
    counts: Arc<PortCounts>,
}

/// A connection that was let in at a port.
#[derive(Debug)]
pub(crate) enum Admission {
    /// A caller of the cluster.
    Caller(Caller, Stream),
    /// A request for a scrape that has begun with these bytes. What it must show is not looked at yet.
    Scrape(Stream, [u8; proof::MAGIC.len()], Pass),
}

/// The authority behind a port, and for how long it signs.
#[derive(Clone, Debug)]
pub struct Signer {
    /// The authority.
    pub authority: Arc<Authority>,
    /// Lifetime of the certificate of a node.
    pub lifetime: Duration,
    /// The table of the machines of all nodes; none where the authority's folder is the only one.
    pub owners: Option<Arc<dyn Owners>>,
}

/// A connection that was proved.
#[derive(Debug)]
pub struct Stream {
    transport: Transport,
    admitted: Option<Admitted>,
    cut: Option<Cut>,
    /// Counts while the connection is open.
    _part: Option<Part>,
}

/// The end of a connection from outside: its machine was shut out.
struct Cut {
    hit: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    is_hit: bool,
}

#[derive(Debug)]
enum Transport {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// As [`Stream`], for a thread that may wait.
#[derive(Debug)]
pub enum BlockingStream {
    /// In the clear.
    Clear(std::net::TcpStream),
    /// Under TLS, opened by this side.
    Client(Box<StreamOwned<ClientConnection, std::net::TcpStream>>),
    /// Under TLS, accepted by this side.
    Server(Box<StreamOwned<ServerConnection, std::net::TcpStream>>),
}

/// Opens a connection to the first address of `host:port` that accepts one. The address of a node comes from
/// the cluster, so its name may only lead to a machine.
async fn open(address: &str, called: &Called) -> io::Result<TcpStream> {
    let mut failed = io::Error::other(format!("{address} resolves to no address of a machine"));
    let whose = if matches!(called, Called::Node(_)) { Whose::Member } else { Whose::Store };
    for found in names::addresses(address, whose).await? {
        if whose == Whose::Member && !is_of_machine(found.ip()) {
            continue;
        }
        match TcpStream::connect(found).await {
            Ok(stream) => return Ok(stream),
            Err(cause) => failed = cause,
        }
    }
    Err(failed)
}

impl Credentials {
    /// Those of a member that knows the cluster's secret.
    #[must_use]
    pub fn with_secret(secret: Secret, node: Option<NodeId>) -> Credentials {
        Credentials { trust: Trust::Secret(secret), node }
    }

    /// Opens a connection to `address` (`host:port`) for a purpose.
    ///
    /// # Errors
    /// [`ProofError`].
    pub async fn connect(
        &self,
        address: &str,
        called: Called,
        purpose: Purpose,
    ) -> Result<Stream, ProofError> {
        let mut stream = open(address, &called).await?;
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr()?;
        let transport = match &self.trust {
            Trust::Secret(secret) => {
                proof::prove(&mut stream, &secret.at(peer), self.node, purpose).await?;
                Transport::Clear(stream)
            }
            Trust::Identity(tls) => {
                let connector = TlsConnector::from(tls.client());
                let shake = connector.connect(called.server_name()?, stream);
                let mut stream = within(CALLER_WAIT, shake).await?.map_err(ProofError::Tls)?;
                let key = Secret::from_bytes(proof_key(stream.get_ref().1)?);
                proof::prove(&mut stream, &key, self.node, purpose).await?;
                Transport::Tls(Box::new(stream.into()))
            }
        };
        Ok(Stream { transport, admitted: None, cut: None, _part: None })
    }

    /// Proves a connection that this thread opened.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn meet_blocking(
        &self,
        tcp: std::net::TcpStream,
        called: Called,
        purpose: Purpose,
    ) -> Result<BlockingStream, ProofError> {
        let peer = tcp.peer_addr()?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(PROOF_WAIT))?;
        tcp.set_write_timeout(Some(PROOF_WAIT))?;
        match &self.trust {
            Trust::Secret(secret) => {
                let mut stream = BlockingStream::Clear(tcp);
                proof::prove_blocking(&mut stream, &secret.at(peer), self.node, purpose)?;
                Ok(stream)
            }
            Trust::Identity(tls) => {
                let failed = |error| ProofError::Tls(io::Error::other(error));
                let mut connection =
                    ClientConnection::new(tls.client(), called.server_name()?).map_err(failed)?;
                let mut tcp = tcp;
                while connection.is_handshaking() {
                    connection.complete_io(&mut tcp).map_err(ProofError::Tls)?;
                }
                let key = Secret::from_bytes(proof_key(&connection)?);
                let mut stream = BlockingStream::Client(Box::new(StreamOwned::new(connection, tcp)));
                proof::prove_blocking(&mut stream, &key, self.node, purpose)?;
                Ok(stream)
            }
        }
    }

    /// A connection for gRPC to `address` (`host:port`) that is made and proved when it is first needed, and
    /// again when it breaks.
    #[must_use]
    pub fn channel(&self, endpoint: &Endpoint, address: &str, called: Called) -> Channel {
        let (address, own) = (Arc::<str>::from(address), self.clone());
        endpoint.connect_with_connector_lazy(tower::service_fn(move |_: http::Uri| {
            let (address, own) = (Arc::clone(&address), own.clone());
            async move { own.connect(&address, called, Purpose::Calls).await.map(TokioIo::new) }
        }))
    }
}

impl Gate {
    /// Lets members of this trust in. With certificates nobody is let in before it was heard which machines
    /// were shut out ([`Gate::revoked`]).
    #[must_use]
    pub fn new(trust: Trust) -> Gate {
        let revoked = match trust {
            Trust::Identity(_) => Revoked::unheard(),
            Trust::Secret(_) => Revoked::nobody(),
        };
        let per_machine_max = Descriptors::of_process().per_machine_max();
        let (shares, crowds, counts) = Default::default();
        Gate { trust, signer: None, revoked, shares, per_machine_max, crowds, counts }
    }

    /// Signs certificates for machines that join, as well. Its authority knows which ones were shut out.
    #[must_use]
    pub fn signing(self, signer: Signer) -> Gate {
        let revoked = Revoked::nobody().with_authority(Some(Arc::clone(&signer.authority)));
        Gate { signer: Some(signer), revoked, ..self }
    }

    /// Asks this list, which others change, beside the authority of this machine.
    #[must_use]
    pub fn knowing(self, revoked: &Revoked) -> Gate {
        let authority = self.signer.as_ref().map(|signer| Arc::clone(&signer.authority));
        Gate { revoked: revoked.with_authority(authority), ..self }
    }

    /// Gives nodes to machines by a table that several authorities share.
    #[must_use]
    pub fn with_owners(mut self, owners: Arc<dyn Owners>) -> Gate {
        if let Some(signer) = &mut self.signer {
            signer.owners = Some(owners);
        }
        self
    }

    /// The machines that were shut out, as this port knows them.
    #[must_use]
    pub fn revoked(&self) -> &Revoked {
        &self.revoked
    }

    /// The authority on this machine, if it signs here.
    #[must_use]
    pub fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// Lets at most this many connections of one machine be open; a quarter of what the process may have open
    /// if nothing is said.
    #[must_use]
    pub fn per_machine(self, max: usize) -> Gate {
        Gate { per_machine_max: max, ..self }
    }

    /// Counts of what the port refused.
    #[must_use]
    pub fn counts(&self) -> &Arc<PortCounts> {
        &self.counts
    }

    /// Has a connection that was accepted prove itself, and refuses it otherwise.
    ///
    /// # Errors
    /// [`ProofError`]; the caller has been told and the connection is over.
    pub(crate) async fn admit(&self, mut stream: TcpStream) -> Result<Admission, ProofError> {
        // Its latency matters more than its count of packets; without this it is only slower.
        let _nodelay = stream.set_nodelay(true);
        let (called, source) = (stream.local_addr()?, stream.peer_addr()?.ip());
        // The part of the machine is taken when it is allowed in, before it hears of that.
        let counted = Mutex::new(None);
        let (caller, transport) = match &self.trust {
            Trust::Secret(secret) => {
                let allow = |claim: &Claim| match claim.purpose {
                    Purpose::Join => Err(Reason::NoAuthority),
                    Purpose::Calls | Purpose::Transfers => Ok(()),
                };
                match proof::admit(&mut stream, &secret.at(called), allow).await {
                    Err(ProofError::Scrape(begun)) => {
                        let stream = Stream {
                            transport: Transport::Clear(stream),
                            admitted: None,
                            cut: None,
                            _part: None,
                        };
                        return Ok(Admission::Scrape(stream, begun, Pass::Token(scrape::token(secret))));
                    }
                    claimed => {
                        let Claim { purpose, node } = claimed?;
                        (Caller { purpose, who: Who::Trusted { says: node } }, Transport::Clear(stream))
                    }
                }
            }
            Trust::Identity(tls) => {
                let (mut stream, turn) = self.shake_hands(tls, stream, source).await?;
                let connection = stream.get_ref().1;
                let who = subject_of(connection.peer_certificates()).map_or(Who::Stranger, Who::Certified);
                self.crowds.met(turn, who.machine().filter(|own| self.revoked.check(*own).is_ok()));
                let key = Secret::from_bytes(proof_key(connection)?);
                let allow = |claim: &Claim| {
                    let part = self.allow(who, claim)?;
                    *counted.lock().unwrap_or_else(PoisonError::into_inner) = part;
                    Ok(())
                };
                match proof::admit(&mut stream, &key, allow).await {
                    Err(ProofError::Scrape(begun)) => {
                        let transport = Transport::Tls(Box::new(stream.into()));
                        let pass = Pass::Certificate(self.admitted(Caller { purpose: Purpose::Calls, who }));
                        let stream = Stream { transport, admitted: None, cut: None, _part: None };
                        return Ok(Admission::Scrape(stream, begun, pass));
                    }
                    claimed => {
                        let caller = Caller { purpose: claimed?.purpose, who };
                        (caller, Transport::Tls(Box::new(stream.into())))
                    }
                }
            }
        };
        let cut = caller.who.machine().map(|machine| Cut::when(&self.revoked, machine));
        let part = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
        let admitted = Some(self.admitted(caller));
        Ok(Admission::Caller(caller, Stream { transport, admitted, cut, _part: part }))
    }

    fn admitted(&self, caller: Caller) -> Admitted {
        Admitted { caller, revoked: self.revoked.clone(), counts: Arc::clone(&self.counts) }
    }

    async fn shake_hands(
        &self,
        tls: &Tls,
        mut stream: TcpStream,
        source: IpAddr,
    ) -> Result<(tokio_rustls::server::TlsStream<TcpStream>, Turn), ProofError> {
        let shake = async {
            let mut first = [0; proof::HTTP2.len()];
            if stream.peek(&mut first).await? == 0 {
                return Err(ProofError::Look);
            }
            if first[0] != TLS_HANDSHAKE {
                proof::refuse_clear(&mut stream, first == proof::HTTP2).await;
                let refused = ProofError::Refused(Reason::TlsRequired);
                return Err(if first == proof::KNOCK { ProofError::Look } else { refused });
            }
            let turn = self.crowds.turn(source).await;
            let stream = TlsAcceptor::from(tls.server()).accept(stream).await.map_err(ProofError::Tls)?;
            Ok((stream, turn))
        };
        within(PROOF_WAIT, shake).await?
    }

    /// Checks the purpose of a connection against its certificate, before any call is looked at. Returns the
    /// part that it takes of the share of its machine.
    fn allow(&self, who: Who, claim: &Claim) -> Result<Option<Part>, Reason> {
        let Some(machine) = who.machine() else { return self.allow_purpose(who, claim).map(|()| None) };
        self.revoked.check(machine)?;
        let part = self.shares.enter(machine, self.per_machine_max).ok_or(Reason::TooMany)?;
        self.allow_purpose(who, claim)?;
        Ok(Some(part))
    }

    fn allow_purpose(&self, who: Who, claim: &Claim) -> Result<(), Reason> {
        if claim.purpose == Purpose::Join {
            return if self.signer.is_some() { Ok(()) } else { Err(Reason::NoAuthority) };
        }
        let Who::Certified(subject) = who else { return Err(Reason::NoCertificate) };
        if subject.node != claim.node.map(|node| node.0) {
            return Err(Reason::OtherNode);
        }
        match (claim.purpose, subject.role, subject.node) {
            (Purpose::Transfers, role, Some(_)) if role.has_nodes() => Ok(()),
            (Purpose::Calls, ..) => Ok(()),
            _ => Err(Reason::WrongRole),
        }
    }
}

impl Stream {
    /// A stream over TLS that nobody else has proved; for one that joins.
    pub(crate) fn over_tls(stream: tokio_rustls::client::TlsStream<TcpStream>) -> Stream {
        Stream { transport: Transport::Tls(Box::new(stream.into())), admitted: None, cut: None, _part: None }
    }

    /// The same connection, for a thread that may wait.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn into_blocking(self) -> io::Result<BlockingStream> {
        let blocking = |tcp: TcpStream| {
            let tcp = tcp.into_std()?;
            tcp.set_nonblocking(false).map(|()| tcp)
        };
        Ok(match self.transport {
            Transport::Clear(tcp) => BlockingStream::Clear(blocking(tcp)?),
            Transport::Tls(stream) => match *stream {
                TlsStream::Client(stream) => {
                    let (tcp, connection) = stream.into_inner();
                    BlockingStream::Client(Box::new(StreamOwned::new(connection, blocking(tcp)?)))
                }
                TlsStream::Server(stream) => {
                    let (tcp, connection) = stream.into_inner();
                    BlockingStream::Server(Box::new(StreamOwned::new(connection, blocking(tcp)?)))
                }
            },
        })
    }

    /// Whether the machine of the caller was not shut out since it was let in.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let admitted = self.admitted.as_ref();
        admitted.is_none_or(|admitted| {
            let machine = admitted.caller.who.machine();
            machine.is_none_or(|machine| admitted.revoked.check(machine).is_ok())
        })
    }

    /// A handle by which another thread can cut the connection. It keeps the connection open.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn handle(&self) -> io::Result<std::net::TcpStream> {
        let tcp = match &self.transport {
            Transport::Clear(tcp) => tcp,
            Transport::Tls(stream) => stream.get_ref().0,
        };
        tcp.as_fd().try_clone_to_owned().map(std::net::TcpStream::from)
    }

    fn io(self: Pin<&mut Self>) -> Pin<&mut (dyn Duplex + Unpin)> {
        match &mut self.get_mut().transport {
            Transport::Clear(stream) => Pin::new(stream),
            Transport::Tls(stream) => Pin::new(&mut **stream),
        }
    }

    /// Fails once the machine of the caller was shut out, and wakes the reader when it is.
    fn check_cut(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.cut.as_mut().is_some_and(|cut| cut.is_hit(context)) {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, Reason::Revoked.to_string()));
        }
        Ok(())
    }
}

impl Cut {
    fn when(revoked: &Revoked, machine: MachineId) -> Cut {
        let hits = revoked.hits(machine);
        let hit = async move {
            hits.await;
            // Calls are refused from now on. Answers that say so, and news of it, may be under way.
            tokio::time::sleep(CUT_GRACE).await;
        };
        Cut { hit: Box::pin(hit), is_hit: false }
    }

    fn is_hit(&mut self, context: &mut Context<'_>) -> bool {
        self.is_hit = self.is_hit || self.hit.as_mut().poll(context).is_ready();
        self.is_hit
    }
}

impl std::fmt::Debug for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cut({})", self.is_hit)
    }
}

trait Duplex: AsyncRead + AsyncWrite {}

impl<T: AsyncRead + AsyncWrite> Duplex for T {}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_cut(context)?;
        self.io().poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.io().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Clear(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(context)
    }
}

/// The services of a port see who calls.
impl Connected for Stream {
    type ConnectInfo = Option<Admitted>;

    fn connect_info(&self) -> Option<Admitted> {
        self.admitted.clone()
    }
}

impl BlockingStream {
    /// The connection below, for timeouts and to cut it from another thread.
    #[must_use]
    pub fn tcp(&self) -> &std::net::TcpStream {
        match self {
            BlockingStream::Clear(tcp) => tcp,
            BlockingStream::Client(stream) => stream.get_ref(),
            BlockingStream::Server(stream) => stream.get_ref(),
        }
    }

    /// Whether the cipher's tag vouches for every byte.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        !matches!(self, BlockingStream::Clear(_))
    }
}

impl Read for BlockingStream {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        match self {
            BlockingStream::Clear(tcp) => tcp.read(target),
            BlockingStream::Client(stream) => stream.read(target),
            BlockingStream::Server(stream) => stream.read(target),
        }
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            BlockingStream::Clear(tcp) => tcp.write(bytes),
            BlockingStream::Client(stream) => stream.write(bytes),
            BlockingStream::Server(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            BlockingStream::Clear(tcp) => tcp.flush(),
            BlockingStream::Client(stream) => stream.flush(),
            BlockingStream::Server(stream) => stream.flush(),
        }
    }
}
