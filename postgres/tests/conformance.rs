//! The contract of a store, unchanged, on a server: in the database alone, and with large blobs in an object store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod common;

use std::sync::{Arc, Mutex};

use common::{fresh, named, server};
use keepspan::{
    Digest, EpisodeId,
    store::{AsyncStore as _, Batch, Blob, conformance},
};
use keepspan_postgres::{
    Blocking, Objects, Options, PostgresStore,
    object_store::{ObjectStore, local::LocalFileSystem, memory::InMemory},
};

/// How many stores the suite opens.
const STORES: usize = 16;

/// Above this, blobs are objects; the suite has them on both sides of it.
const ABOVE: usize = 4_095;

/// Runs the suite on stores that `with` makes of fresh ones.
async fn check(address: &str, mut with: impl FnMut(Options) -> Options) {
    let mut stores = Vec::new();
    for _ in 0..STORES {
        stores.push(PostgresStore::connect(with(fresh(address).await)).await.unwrap());
    }
    let stores = Mutex::new(stores);
    let open = || stores.lock().unwrap().pop().unwrap();
    conformance::check_async(open).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_alone_conforms() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    check(&address, |options| options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_is_enough() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    check(&address, |options| options.connections(1)).await;
}

#[test]
fn it_conforms_where_it_is_waited_for() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    conformance::check(|| {
        let options = common::schema(&address);
        Blocking::migrate(&options).unwrap();
        Blocking::connect(options).unwrap()
    })
    .unwrap();
}

/// A role that may call the two functions and read, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn it_conforms_for_a_role_that_cannot_write_to_the_tables() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let first = fresh(&address).await;
    let client = common::by_hand(&address, &first).await;
    let role = format!("agent_{}", named(&first));
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    let as_role = address.replace("keepspan@", &format!("{role}@"));
    let mut stores = Vec::new();
    for _ in 0..STORES {
        let schema = named(&fresh(&address).await);
        let grants = format!(
            "GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}; \
             GRANT EXECUTE ON FUNCTION {schema}.commit, {schema}.commit_sealing TO {role}"
        );
        client.batch_execute(&grants).await.unwrap();
        let options = Options::new(&as_role).unwrap().schema(schema).unwrap();
        stores.push(PostgresStore::connect(options).await.unwrap());
    }
    let stores = Mutex::new(stores);
    conformance::check_async(|| stores.lock().unwrap().pop().unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_in_a_folder_conform() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut next = 0;
    check(&address, |options| {
        next += 1;
        let place = folder.path().join(next.to_string());
        std::fs::create_dir(&place).unwrap();
        let store = LocalFileSystem::new_with_prefix(place).unwrap().with_fsync(true);
        options.objects(Objects::new(Arc::new(store)).above(ABOVE))
    })
    .await;
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn objects_on_s3_conform() {
    let (Some(address), Some(bucket)) = (server("KEEPSPAN_POSTGRES"), server("KEEPSPAN_S3")) else { return };
    check(&address, |options| {
        let objects = Objects::open(&bucket).unwrap().folder(named(&options)).above(ABOVE);
        options.objects(objects)
    })
    .await;
}

/// One that is sent in parts comes back whole, is put once, and goes with its seal.
async fn large(options: Options) {
    let store = PostgresStore::connect(options).await.unwrap();
    let bytes: Vec<u8> = (0_u32..5_000_000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    assert!(bytes.len() > 16 << 20);
    let (blob, episode) = (Blob::new(bytes), EpisodeId::new("large"));
    for length in 0..2 {
        store.commit(&Batch::new(episode.clone(), length, vec![blob.clone()], vec![vec![1]])).await.unwrap();
        let found = store.get_many(&[*blob.digest()]).await.unwrap();
        assert_eq!(Digest::of(&found[0]), *blob.digest());
    }
    let verified = store.verify().await.unwrap();
    assert_eq!((verified.objects, verified.bytes), (1, 20_000_000));
    assert!(verified.orphans.is_empty() && verified.dangling.is_empty(), "{verified:?}");
    store.commit(&Batch::new(episode, 2, vec![], vec![]).sealing(vec![*blob.digest()])).await.unwrap();
    assert_eq!(store.verify().await.unwrap().objects, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_blob_is_sent_in_parts() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    large(fresh(&address).await.objects(Objects::new(memory))).await;
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&format!("file://{}", folder.path().display())).unwrap();
    large(fresh(&address).await.objects(objects)).await;
    #[cfg(feature = "s3")]
    if let Some(bucket) = server("KEEPSPAN_S3") {
        let options = fresh(&address).await;
        let folder = named(&options);
        large(options.objects(Objects::open(&bucket).unwrap().folder(folder))).await;
    }
}

/// Two schemas with one bucket do not see each other's objects: not in a list, and not when one of them seals.
#[tokio::test(flavor = "multi_thread")]
async fn stores_of_one_bucket_are_apart() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let mut stores = Vec::new();
    for _ in 0..2 {
        let objects = Objects::new(memory.clone()).above(10);
        stores.push(PostgresStore::connect(fresh(&address).await.objects(objects)).await.unwrap());
    }
    let (blob, episode) = (Blob::new(b"the same text in both".to_vec()), EpisodeId::new("e"));
    for store in &stores {
        store.commit(&Batch::new(episode.clone(), 0, vec![blob.clone()], vec![vec![1]])).await.unwrap();
    }
    let seal = Batch::new(episode, 1, vec![], vec![vec![2]]).sealing(vec![*blob.digest()]);
    stores[0].commit(&seal).await.unwrap();
    assert_eq!(stores[1].get_many(&[*blob.digest()]).await.unwrap()[0], blob.bytes());
    for (store, objects) in stores.iter().zip([0, 1]) {
        let verified = store.verify().await.unwrap();
        assert_eq!(verified.objects, objects);
        assert!(verified.orphans.is_empty() && verified.dangling.is_empty(), "{verified:?}");
    }
}
