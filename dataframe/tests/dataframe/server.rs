//! A small web server: files with ranges, an object store's list of files and its ways to write, and answers
//! that go wrong. Tests of frames and of tensors have it, and each needs some of it.

#![allow(dead_code, reason = "each program of tests needs some of it")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server that runs until the process ends.
#[derive(Clone)]
pub struct Server {
    pub address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    files: HashMap<String, Vec<u8>>,
    /// Requests so far: method, path with its query, and the key that signed it.
    requests: Vec<(String, String, String)>,
    /// Bytes of bodies that were sent.
    sent: usize,
    /// Attempts that still fail at a path.
    failures: HashMap<String, usize>,
    /// Answers that still end in the middle at a path.
    cuts: HashMap<String, usize>,
    /// The time that the next attempt to write to a path takes.
    delays: HashMap<String, Duration>,
    /// The numbers of uploads that have not ended, and of the last one.
    uploads: BTreeSet<usize>,
    last_upload: usize,
    /// Parts of files that are not whole yet, by the number of the upload and their own.
    parts: BTreeMap<(usize, usize), Vec<u8>>,
}

struct Request {
    method: String,
    path: String,
    /// The first and the last byte; without a first one, that many bytes at the end.
    range: Option<(Option<usize>, Option<usize>)>,
    key: String,
    /// The path of the file to copy, if that is the request.
    copied: Option<String>,
    /// Whether the file is written only if there is none.
    creates: bool,
    body: Vec<u8>,
}

impl Server {
    pub fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Server { address, state: Arc::default() };
        let served = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = served.clone();
                std::thread::spawn(move || while server.serve(&stream).is_some() {});
            }
        });
        server
    }

    /// Adds a file at a path that begins with `/`.
    pub fn add(&self, path: &str, bytes: Vec<u8>) {
        self.state.lock().unwrap().files.insert(path.to_owned(), bytes);
    }

    /// The paths of all files, and whether parts of one that is not whole are left.
    pub fn files(&self) -> (Vec<String>, bool) {
        let state = self.state.lock().unwrap();
        let mut paths: Vec<_> = state.files.keys().cloned().collect();
        paths.sort();
        (paths, !state.parts.is_empty())
    }

    /// The next attempts to get a path fail.
    pub fn fail(&self, path: &str, attempts: usize) {
        self.state.lock().unwrap().failures.insert(path.to_owned(), attempts);
    }

    /// The next answers with a file end in the middle of it, and the connections with them.
    pub fn cut(&self, path: &str, answers: usize) {
        self.state.lock().unwrap().cuts.insert(path.to_owned(), answers);
    }

    /// The next attempt to write to a path takes this time, in which others are served.
    pub fn delay(&self, path: &str, time: Duration) {
        self.state.lock().unwrap().delays.insert(path.to_owned(), time);
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) -> Option<Vec<u8>> {
        self.state.lock().unwrap().files.remove(path)
    }

    /// Tells the server at an address, also that of another process, that a path fails from now on.
    pub fn tell_to_fail(address: &str, path: &str) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(format!("GET /fail{path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        BufReader::new(stream).read_line(&mut String::new()).unwrap();
    }

    /// Has the server at this address hold other bytes at a path.
    pub fn tell_to_replace(address: &str, path: &str) {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("PUT {path} HTTP/1.1\r\nContent-Length: 7\r\n\r\nanother");
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream).read_line(&mut String::new()).unwrap();
    }

    /// Bytes that were sent since the last call.
    pub fn take_sent(&self) -> usize {
        std::mem::take(&mut self.state.lock().unwrap().sent)
    }

    /// Requests so far: method, path with its query, and the key that signed it.
    pub fn requests(&self) -> Vec<(String, String, String)> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Answers one request; `None` if the connection has ended.
    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let request = read(stream)?;
        let plain = unescaped(request.path.split('?').next().unwrap());
        let mut state = self.state.lock().unwrap();
        state.requests.push((request.method.clone(), request.path.clone(), request.key.clone()));
        let delay = if request.method == "PUT" { state.delays.remove(&plain) } else { None };
        if let Some(time) = delay {
            drop(state);
            std::thread::sleep(time);
            state = self.state.lock().unwrap();
        }
        if let Some(path) = plain.strip_prefix("/fail") {
            state.failures.insert(path.to_owned(), usize::MAX);
            drop(state);
            return answer(stream, &request, "200 OK", "", b"");
        }
        let is_get = request.method == "GET";
        if let Some(failures) = state.failures.get_mut(&plain).filter(|failures| is_get && 0 < **failures) {
            *failures -= 1;
            drop(state);
            return answer(stream, &request, "500 Internal Server Error", "", b"try again");
        }
        if let Some((status, body)) = changed(&mut state, &request, &plain) {
            drop(state);
            return answer(stream, &request, status, "", body.as_bytes());
        }
        if let Some((_, query)) = request.path.split_once('?') {
            let list = listed(&state, &plain, query);
            drop(state);
            return answer(stream, &request, "200 OK", "", list.as_bytes());
        }
        let found = state.files.get(&plain).cloned();
        match (plain.as_str(), found) {
            (path, _) if path.contains("denied") => {
                drop(state);
                answer(stream, &request, "403 Forbidden", "", b"no")
            }
            (path, Some(bytes)) if path.contains("slow") => {
                drop(state);
                std::thread::sleep(Duration::from_secs(4));
                answer(stream, &request, "200 OK", "", &bytes)
            }
            (_, None) => {
                drop(state);
                answer(stream, &request, "404 Not Found", "", b"there is none")
            }
            (path, Some(bytes)) => {
                let (status, head, part) = part(&request, &bytes);
                let head = format!("{head}ETag: {}\r\n", tag(&bytes));
                state.sent += if request.method == "HEAD" { 0 } else { part.len() };
                let cut = state.cuts.get_mut(path).filter(|cuts| is_get && 0 < **cuts);
                let is_cut = cut.map(|cuts| *cuts -= 1).is_some();
                drop(state);
                if is_cut {
                    send(stream, status, &head, part.len(), &part[..part.len() / 2]);
                    return None;
                }
                answer(stream, &request, status, &head, part)
            }
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream);
    let mut first = String::new();
    lines.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut request = Request {
        method,
        path,
        range: None,
        key: String::new(),
        copied: None,
        creates: false,
        body: Vec::new(),
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "range" => {
                let (from, to) = value.strip_prefix("bytes=")?.split_once('-')?;
                request.range = Some((from.parse().ok(), to.parse().ok()));
            }
            "authorization" => {
                let key = value.split("Credential=").nth(1).and_then(|rest| rest.split('/').next());
                request.key = key.unwrap_or_default().to_owned();
            }
            "x-amz-copy-source" => {
                request.copied = Some(format!("/{}", unescaped(value.trim_start_matches('/'))))
            }
            "if-none-match" => request.creates = value == "*",
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    lines.take(length).read_to_end(&mut request.body).ok()?;
    Some(request)
}

/// Writes, copies or removes files as a request to an object store asks for; `None` if it only reads.
fn changed(state: &mut State, request: &Request, path: &str) -> Option<(&'static str, String)> {
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    let of_query = |name: &str| {
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse::<usize>().ok())
    };
    let (number, upload) = (of_query("partNumber"), of_query("uploadId"));
    match request.method.as_str() {
        "PUT" | "POST" if path.contains("denied") => Some(("403 Forbidden", String::new())),
        "PUT" if request.creates && state.files.contains_key(path) => {
            Some(("412 Precondition Failed", String::new()))
        }
        _ if upload.is_some_and(|upload| !state.uploads.contains(&upload)) => {
            Some(("404 Not Found", "<Error><Code>NoSuchUpload</Code></Error>".to_owned()))
        }
        "PUT" => {
            let bytes = match &request.copied {
                Some(copied) => state.files.get(copied)?.clone(),
                None => request.body.clone(),
            };
            match number {
                Some(number) => drop(state.parts.insert((upload?, number), bytes)),
                None => drop(state.files.insert(path.to_owned(), bytes)),
            }
            let copied = "<CopyObjectResult><ETag>\"1\"</ETag></CopyObjectResult>";
            Some(("200 OK", request.copied.as_ref().map_or(String::new(), |_| copied.to_owned())))
        }
        "POST" if query.starts_with("uploads") => {
            state.last_upload += 1;
            let id = state.last_upload;
            state.uploads.insert(id);
            let begun = "InitiateMultipartUploadResult";
            Some(("200 OK", format!("<{begun}><UploadId>{id}</UploadId></{begun}>")))
        }
        "POST" if upload.is_some() => {
            let parts = std::mem::take(&mut state.parts);
            let (whole, others) =
                parts.into_iter().partition::<BTreeMap<_, _>, _>(|((of, _), _)| Some(*of) == upload);
            state.parts = others;
            state.uploads.retain(|id| Some(*id) != upload);
            state.files.insert(path.to_owned(), whole.into_values().flatten().collect());
            let ended = "<CompleteMultipartUploadResult><ETag>\"1\"</ETag></CompleteMultipartUploadResult>";
            Some(("200 OK", ended.to_owned()))
        }
        "POST" => {
            let asked = String::from_utf8_lossy(&request.body).into_owned();
            let keys = asked.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
            let bucket = path.trim_end_matches('/');
            let mut removed = String::new();
            for key in keys {
                state.files.remove(&format!("{bucket}/{key}"));
                removed.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
            }
            Some(("200 OK", format!("<DeleteResult>{removed}</DeleteResult>")))
        }
        "DELETE" => {
            match upload {
                Some(upload) => {
                    state.uploads.remove(&upload);
                    state.parts.retain(|(of, _), _| *of != upload);
                }
                None => drop(state.files.remove(path)),
            }
            Some(("204 No Content", String::new()))
        }
        _ => None,
    }
}

/// A path with `%20` as the byte that it stands for.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('%');
    let mut plain = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        plain.push(u8::from_str_radix(&part[..2], 16).unwrap());
        plain.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(plain).unwrap()
}

/// The part of a file that a request wants.
fn part<'a>(request: &Request, bytes: &'a [u8]) -> (&'static str, String, &'a [u8]) {
    match request.range {
        None => ("200 OK", String::new(), bytes),
        Some(range) => {
            let (from, end) = match range {
                (Some(from), to) => (from, to.map_or(bytes.len(), |to| (to + 1).min(bytes.len()))),
                (None, last) => (bytes.len().saturating_sub(last.unwrap_or(0)), bytes.len()),
            };
            if end <= from {
                return ("416 Range Not Satisfiable", String::new(), &[]);
            }
            let head = format!("Content-Range: bytes {from}-{}/{}\r\n", end - 1, bytes.len());
            ("206 Partial Content", head, &bytes[from..end])
        }
    }
}

fn answer(stream: &TcpStream, request: &Request, status: &str, head: &str, body: &[u8]) -> Option<()> {
    let sent = if request.method == "HEAD" { &[] } else { body };
    send(stream, status, head, body.len(), sent)
}

/// Sends the head of an answer with a body of this length, and what is to be sent of the body.
fn send(mut stream: &TcpStream, status: &str, head: &str, length: usize, body: &[u8]) -> Option<()> {
    let tag = if head.contains("ETag") { "" } else { "ETag: \"1\"\r\n" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nLast-Modified: Thu, 29 Feb 2024 10:00:00 GMT\r\n\
         {tag}Accept-Ranges: bytes\r\n{head}\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()
}

/// The tag of a file: of its length, and of the bytes at its begin and its end.
fn tag(bytes: &[u8]) -> String {
    const LOOKED_AT: usize = 256;
    let mixed = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let ends = bytes.iter().take(LOOKED_AT).chain(bytes.iter().rev().take(LOOKED_AT));
    format!("\"{}-{:016x}\"", bytes.len(), ends.fold(0xcbf2_9ce4_8422_2325, mixed))
}

/// The answer of an object store to the question for the files below a prefix.
fn listed(state: &State, bucket: &str, query: &str) -> String {
    let value = |name: &str| {
        let pair = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        // A space of a query is written as a plus sign.
        unescaped(&pair.unwrap_or_default().replace('+', " "))
    };
    let (prefix, by_folder) = (value("prefix"), !value("delimiter").is_empty());
    let bucket = format!("{}/", bucket.trim_end_matches('/'));
    let mut keys: Vec<_> = state
        .files
        .iter()
        .filter_map(|(path, bytes)| Some((path.strip_prefix(&bucket)?, bytes.len(), tag(bytes))))
        .filter(|(key, ..)| key.starts_with(&prefix))
        .collect();
    keys.sort();
    let mut folders: Vec<String> = Vec::new();
    let mut list = String::new();
    for (key, size, tag) in keys {
        match key[prefix.len()..].split_once('/').filter(|_| by_folder) {
            Some((folder, _)) => folders.push(format!("{prefix}{folder}/")),
            None => list.push_str(&format!(
                "<Contents><Key>{key}</Key><Size>{size}</Size>\
                 <LastModified>2024-02-29T10:00:00.000Z</LastModified><ETag>{tag}</ETag></Contents>"
            )),
        }
    }
    folders.dedup();
    for folder in folders {
        list.push_str(&format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"));
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>\
         <IsTruncated>false</IsTruncated>{list}</ListBucketResult>"
    )
}
