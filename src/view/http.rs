//! A server of pages for one person on one machine: as little of HTTP/1.1 as a browser needs.
//!
//! It listens on the loopback interface alone. A request is a GET of a path, without a body and
//! with one `Host`, which must be this server by its address or as `localhost`: a page of somebody
//! else whose name was made to lead here has its own name there. A request asks for a word of a
//! closed list, never a name of a file. Each answer closes its connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The longest head of a request in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// How long a connection may keep silent.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections that are served at once.
const MOST: usize = 32;
/// The headers of every answer: nobody may keep it, guess its type, or use it from another page.
const ALWAYS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

/// An answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn ok(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: "200 OK",
            kind,
            body: body.into(),
        }
    }

    /// A refusal, with a sentence for people.
    pub(super) fn refused(status: &'static str, why: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            body: format!("{why}\n").into(),
        }
    }
}

/// A server that has a port and serves nothing yet.
#[derive(Debug)]
pub(super) struct Server {
    listener: TcpListener,
    port: u16,
}

impl Server {
    /// Takes a port of the loopback interface; 0 stands for any that is free.
    pub(super) fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Answers requests for as long as the process lives. `answer` is given the path.
    pub(super) fn serve(
        self,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> io::Error {
        let answer = Arc::new(answer);
        let served = Arc::new(AtomicUsize::new(0));
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                // The other side has gone again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return error,
            };
            if served.fetch_add(1, Ordering::Relaxed) >= MOST {
                served.fetch_sub(1, Ordering::Relaxed);
                // It is closed without an answer, and asks again.
                continue;
            }
            let (answer, of_thread, port) = (Arc::clone(&answer), Arc::clone(&served), self.port);
            let thread = std::thread::Builder::new().spawn(move || {
                // A browser that has gone needs no answer.
                drop(converse(stream, port, &*answer));
                of_thread.fetch_sub(1, Ordering::Relaxed);
            });
            if thread.is_err() {
                served.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// Reads a request and answers it.
fn converse(mut stream: TcpStream, port: u16, answer: &dyn Fn(&str) -> Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let reply = match read_head(&mut stream)? {
        Some(head) => match path(&head, port) {
            Ok(path) => answer(path),
            Err(refusal) => refusal,
        },
        None => Answer::refused(
            "431 Request Header Fields Too Large",
            "The head of the request is too long.",
        ),
    };
    let allow = if reply.status.starts_with("405") {
        "Allow: GET\r\n"
    } else {
        ""
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}{ALWAYS}\r\n",
        reply.status,
        reply.kind,
        reply.body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&reply.body)?;
    stream.flush()
}

/// The head of a request, up to its empty line; `None` if it is too long.
fn read_head(stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&piece[..length]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(Some(head));
        }
        if head.len() > LONGEST_HEAD {
            return Ok(None);
        }
    }
}

/// The path that a request asks for, if it is one that is answered.
fn path(head: &[u8], port: u16) -> Result<&str, Answer> {
    let bad = |why| Answer::refused("400 Bad Request", why);
    let head = std::str::from_utf8(head).map_err(|_| bad("The request is no text."))?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(path), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (method, path, version, words.next())
    else {
        return Err(bad("The request is not one of HTTP/1.1."));
    };
    let mut hosts = Vec::new();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            return Err(bad("The request has a line that is no field."));
        };
        if name.eq_ignore_ascii_case("host") {
            hosts.push(value.trim());
        }
    }
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    match &hosts[..] {
        [host] if own.iter().any(|own| host.eq_ignore_ascii_case(own)) => {}
        _ => {
            let why = "The request is for another host.";
            return Err(Answer::refused("403 Forbidden", why));
        }
    }
    if method != "GET" {
        let why = "Only GET is answered.";
        return Err(Answer::refused("405 Method Not Allowed", why));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &str) -> Result<&str, &'static str> {
        path(head.as_bytes(), 8080).map_err(|refusal| refusal.status)
    }

    #[test]
    fn only_get_of_this_host_is_answered() {
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080"), Ok("/"));
        let more = "GET /frame/7 HTTP/1.1\r\nAccept: */*\r\nhost: LocalHost:8080\r\nX: a:b";
        assert_eq!(asked(more), Ok("/frame/7"));
        for (head, status) in [
            ("GET / HTTP/1.1", "403 Forbidden"),
            ("GET / HTTP/1.1\r\nHost: evil.example:8080", "403 Forbidden"),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1", "403 Forbidden"),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1:8081", "403 Forbidden"),
            (
                "GET / HTTP/1.1\r\nHost: localhost:8080\r\nHost: localhost:8080",
                "403 Forbidden",
            ),
            (
                "POST / HTTP/1.1\r\nHost: localhost:8080",
                "405 Method Not Allowed",
            ),
            (
                "HEAD / HTTP/1.1\r\nHost: localhost:8080",
                "405 Method Not Allowed",
            ),
            ("GET /", "400 Bad Request"),
            (
                "GET /a b HTTP/1.1\r\nHost: localhost:8080",
                "400 Bad Request",
            ),
            ("GET / HTTP/2\r\nHost: localhost:8080", "400 Bad Request"),
            ("", "400 Bad Request"),
            (
                "GET / HTTP/1.1\r\nHost: localhost:8080\r\nbroken",
                "400 Bad Request",
            ),
        ] {
            assert_eq!(asked(head), Err(status), "{head}");
        }
        let refused = path(b"GET /\xff HTTP/1.1", 8080).unwrap_err();
        assert_eq!(refused.status, "400 Bad Request");
    }

    #[test]
    fn heads_end_with_an_empty_line_and_are_not_read_without_end() {
        let head = read_head(&mut &b"GET / HTTP/1.1\r\nHost: x\r\n\r\nrest"[..]).unwrap();
        assert_eq!(head.unwrap(), b"GET / HTTP/1.1\r\nHost: x");
        assert!(read_head(&mut io::repeat(b'a')).unwrap().is_none());
        let cut = read_head(&mut &b"GET / HTTP/1.1\r\n"[..]).unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }
}
