//! Large blobs in an object store: what is left there, what is missing, what is not whole.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod common;

use std::sync::Arc;

use common::{fresh, named, open, server};
use keepspan::{
    EpisodeId,
    store::{AsyncStore as _, Batch, Blob, StoreError},
};
use keepspan_postgres::{
    Error, Objects, Options, PostgresStore,
    object_store::{ObjectStoreExt as _, PutPayload, memory::InMemory, path::Path},
};

#[tokio::test]
async fn a_refused_batch_leaves_at_most_an_object_that_nothing_names() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let memory = Arc::new(InMemory::new());
    let options = fresh(&address).await.objects(Objects::new(memory.clone()).above(100));
    let store = open(&options).await;
    let (small, large, other) = (Blob::new(vec![1; 100]), Blob::new(vec![1; 101]), Blob::new(vec![2; 200]));
    let episode = EpisodeId::new("e");
    let batch =
        |expected, blob: &Blob| Batch::new(episode.clone(), expected, vec![small.clone(), blob.clone()], vec![vec![1]]);
    store.commit(&batch(0, &large)).await.unwrap();
    let refused = store.commit(&batch(0, &other)).await;
    assert!(matches!(refused, Err(StoreError::Conflict { expected: 0, found: 1, .. })), "{refused:?}");
    let missing = store.get_many(&[*other.digest()]).await;
    assert!(matches!(missing, Err(StoreError::Missing { digest }) if digest == *other.digest()));
    let verified = store.verify().await.unwrap();
    assert_eq!((verified.objects, verified.bytes, verified.dangling.len()), (2, 301, 0));
    let [orphan] = verified.orphans.as_slice() else { panic!("{verified:?}") };
    assert_eq!((orphan.digest, orphan.bytes, orphan.sealed), (*other.digest(), 200, false));
    // Named after all, it is used as it lies there.
    store.commit(&batch(1, &other)).await.unwrap();
    assert!(store.verify().await.unwrap().orphans.is_empty());
    assert_eq!(store.get_many(&[*other.digest(), *small.digest()]).await.unwrap(), [other.bytes(), small.bytes()]);
    // Whoever has no object store is told where the text is.
    let without =
        PostgresStore::connect(Options::new(&address).unwrap().schema(named(&options)).unwrap()).await.unwrap();
    let elsewhere = without.get_many(&[*large.digest()]).await;
    let Err(StoreError::Backend(error)) = elsewhere else { panic!("{elsewhere:?}") };
    assert!(matches!(error.downcast_ref(), Some(Error::NoObjects { digest }) if digest == large.digest()));

    // A seal takes the object, what is put later is removed again, and what a seal was kept from is found.
    let seal = Batch::new(episode.clone(), 2, vec![], vec![]).sealing(vec![*large.digest()]);
    store.commit(&seal).await.unwrap();
    assert_eq!(store.verify().await.unwrap().objects, 1);
    store.commit(&batch(2, &large)).await.unwrap();
    assert_eq!(store.verify().await.unwrap().objects, 1);
    without.commit(&Batch::new(episode.clone(), 3, vec![], vec![]).sealing(vec![*other.digest()])).await.unwrap();
    let verified = store.verify().await.unwrap();
    assert!(matches!(verified.orphans.as_slice(), [orphan] if orphan.sealed && orphan.digest == *other.digest()));
    assert_eq!(store.scrub().await.unwrap(), 1);
    assert_eq!(store.verify().await.unwrap().objects, 0);
}

#[tokio::test]
async fn a_removed_object_is_told() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let memory = Arc::new(InMemory::new());
    let options = fresh(&address).await;
    let store = open(&options.clone().objects(Objects::new(memory).above(100))).await;
    let large = Blob::new(vec![1; 101]);
    store.commit(&Batch::new(EpisodeId::new("e"), 0, vec![large.clone()], vec![])).await.unwrap();
    let empty = open(&options.objects(Objects::new(Arc::new(InMemory::new())))).await;
    assert_eq!(empty.verify().await.unwrap().dangling, [*large.digest()]);
    let missing = empty.get_many(&[*large.digest()]).await;
    assert!(matches!(missing, Err(StoreError::Missing { digest }) if digest == *large.digest()));
}

/// One that is not whole is not taken for the blob, and is as it was.
#[tokio::test]
async fn an_object_of_another_length_is_refused() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let memory = Arc::new(InMemory::new());
    let options = fresh(&address).await;
    let store = open(&options.clone().objects(Objects::new(memory.clone()).above(100))).await;
    // One that is sent at once, and one in parts.
    for length in [101, 17 << 20] {
        let blob = Blob::new(vec![7; length]);
        let place = Path::from_iter([named(&options), blob.digest().to_string()]);
        memory.put(&place, PutPayload::from_static(b"cut")).await.unwrap();
        let batch = Batch::new(EpisodeId::new("e"), 0, vec![blob.clone()], vec![vec![1]]);
        let refused = store.commit(&batch).await.unwrap_err();
        let StoreError::Backend(error) = &refused else { panic!("{refused:?}") };
        let Some(Error::OtherObject { digest, bytes, found: 3 }) = error.downcast_ref() else { panic!("{refused:?}") };
        assert_eq!((digest, *bytes), (blob.digest(), length as u64));
        assert_eq!(store.length(&EpisodeId::new("e")).await.unwrap(), 0);
        assert_eq!(memory.get(&place).await.unwrap().bytes().await.unwrap().as_ref(), b"cut");
    }
}

#[tokio::test]
async fn a_refused_batch_brings_no_sealed_text_back() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let store = open(&fresh(&address).await.objects(Objects::new(Arc::new(InMemory::new())).above(100))).await;
    let (secret, other, episode) = (Blob::new(vec![1; 200]), Blob::new(vec![2; 200]), EpisodeId::new("e"));
    let batch = |expected| {
        let blobs = vec![secret.clone(), other.clone()];
        Batch::new(episode.clone(), expected, blobs, vec![vec![1]])
    };
    store.commit(&batch(0)).await.unwrap();
    let seal = Batch::new(episode.clone(), 1, vec![], vec![]).sealing(vec![*secret.digest()]);
    store.commit(&seal).await.unwrap();
    for expected in [0, 1] {
        let refused = store.commit(&batch(expected)).await;
        assert_eq!(refused.is_err(), expected == 0, "{refused:?}");
        let verified = store.verify().await.unwrap();
        assert_eq!((verified.objects, verified.bytes, verified.orphans.len()), (1, 200, 0));
    }
}
