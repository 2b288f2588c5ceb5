//! A proved connection as the wire of a transfer: `object-store` knows no TLS, `protos` no transfers.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use tharsis_object_store::transfer::Wire;
use tharsis_protos::connection::BlockingStream;

/// A connection that was proved.
pub struct Proved(pub BlockingStream);

impl Read for Proved {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.0.read(target)
    }
}

impl Write for Proved {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Wire for Proved {
    fn tcp(&self) -> &TcpStream {
        self.0.tcp()
    }

    fn is_sealed(&self) -> bool {
        self.0.is_sealed()
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> io::Result<usize> {
        match &mut self.0 {
            BlockingStream::Clear(tcp) => tcp.send(bytes, more),
            sealed => sealed.write(bytes),
        }
    }
}
