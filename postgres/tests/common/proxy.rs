//! Stands between a client and the server: counts round trips, and loses answers.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

#[derive(Clone, Default)]
pub struct Proxy {
    /// How often the server spoke after the client had.
    pub round_trips: Arc<AtomicU64>,
    /// The next answer is lost, and its connection with it.
    pub loses: Arc<AtomicBool>,
    /// What the client says is not passed on any more.
    pub silent: Arc<AtomicBool>,
    /// Ends every connection of the client; the server is not told, so that what it does goes on.
    pub cut: Arc<Notify>,
}

impl Proxy {
    /// Listens, and gives the address to use in place of `address`.
    pub async fn before(address: &str) -> (Self, String) {
        let (proxy, listener) = (Self::default(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let server = address.split(['@', '/']).find(|part| part.contains("127.0.0.1:")).unwrap().to_owned();
        let through = address.replace(&server, &listener.local_addr().unwrap().to_string());
        let to = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (proxy, server) = (to.clone(), TcpStream::connect(&server).await);
                tokio::spawn(async move {
                    if let Ok(server) = server {
                        proxy.join(client, server).await;
                    }
                });
            }
        });
        (proxy, through)
    }

    pub fn round_trips(&self) -> u64 {
        self.round_trips.swap(0, Ordering::SeqCst)
    }

    async fn join(self, mut client: TcpStream, mut server: TcpStream) {
        let (mut asked, mut told) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        let mut waiting = false;
        loop {
            tokio::select! {
                () = self.cut.notified() => {
                    drop(client);
                    // Open until the server has said all.
                    while matches!(server.read(&mut told).await, Ok(1..)) {}
                    return;
                }
                read = client.read(&mut asked) => match read {
                    Ok(length @ 1..) => {
                        waiting = true;
                        if !self.silent.load(Ordering::SeqCst) {
                            server.write_all(&asked[..length]).await.unwrap();
                        }
                    }
                    _ => return,
                },
                read = server.read(&mut told) => match read {
                    Ok(1..) if self.loses.swap(false, Ordering::SeqCst) => return,
                    Ok(length @ 1..) => {
                        self.round_trips.fetch_add(u64::from(std::mem::take(&mut waiting)), Ordering::SeqCst);
                        if client.write_all(&told[..length]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
            }
        }
    }
}
