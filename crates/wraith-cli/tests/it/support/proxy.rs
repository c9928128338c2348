//! A SOCKS5 and an HTTP proxy, written from their RFCs, that know one host by a name of their own.
//!
//! Invariant: nobody but these proxies knows [`NAME`], so whoever reaches it went through one.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Loopback to these proxies; top-level domain `test` is in no name server (RFC 6761).
pub const NAME: &str = "relay.test";

/// What a proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    Socks5,
    Http,
}

/// A proxy of this process, and what it was asked for.
#[derive(Debug)]
pub struct Proxy {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub fn start(speaks: Speaks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let told = Arc::clone(&told);
                thread::spawn(move || serve(client, speaks, &told));
            }
        });
        Self { address, asked }
    }

    /// Every `HOST:PORT` that a connection was made to.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut client: TcpStream, speaks: Speaks, asked: &Mutex<Vec<String>>) -> Option<()> {
    let (target, granted) = match speaks {
        Speaks::Socks5 => (socks5_target(&mut client)?, &b"\x05\0\0\x01\0\0\0\0\0\0"[..]),
        Speaks::Http => (http_target(&mut client)?, &b"HTTP/1.1 200 OK\r\n\r\n"[..]),
    };
    let server = TcpStream::connect(target.replace(NAME, "127.0.0.1")).ok()?;
    asked.lock().unwrap().push(target);
    client.write_all(granted).ok()?;
    let back = (server.try_clone().ok()?, client.try_clone().ok()?);
    let up = thread::spawn(move || copy(client, server));
    copy(back.0, back.1);
    up.join().ok()
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    // One end closed or broke; the other hears of it.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// RFC 1928: no authentication, CONNECT, a name or an IPv4 address.
fn socks5_target(client: &mut TcpStream) -> Option<String> {
    let [5, methods] = read(client)? else { return None };
    client.read_exact(&mut vec![0; methods.into()]).ok()?;
    client.write_all(&[5, 0]).ok()?;
    let [5, 1, 0, kind] = read(client)? else { return None };
    let host = match kind {
        1 => std::net::Ipv4Addr::from(read::<4>(client)?).to_string(),
        3 => {
            let [len] = read(client)?;
            let mut name = vec![0; len.into()];
            client.read_exact(&mut name).ok()?;
            String::from_utf8(name).ok()?
        }
        _ => return None,
    };
    Some(format!("{host}:{}", u16::from_be_bytes(read(client)?)))
}

/// RFC 9110 §9.3.6.
fn http_target(client: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(read::<1>(client)?);
    }
    let head = String::from_utf8(head).ok()?;
    Some(head.strip_prefix("CONNECT ")?.split_once(' ')?.0.to_owned())
}

fn read<const N: usize>(client: &mut TcpStream) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
