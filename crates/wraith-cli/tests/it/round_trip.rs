//! A tree with all kinds of entries arrives unchanged.

use std::path::PathBuf;

use crate::support::{World, tree};

/// Sends a tree with all kinds of entries. Returns its path.
fn everything_sent() -> (World, PathBuf) {
    let world = World::new();
    let root = world.source().join("tree");
    tree::everything(&root);
    world.transfer(&[&root]);
    (world, root)
}

#[test]
fn a_tree_with_everything_arrives_as_it_was() {
    let (world, root) = everything_sent();
    tree::assert_same(&root, &world.target().join("tree"));
    assert!(tree::leftovers(&world.target()).is_empty());
}

#[test]
fn several_paths_keep_their_own_last_names() {
    let world = World::new();
    let (film, folder) = (world.source().join("x/film.mov"), world.source().join("y/photos"));
    tree::file(&film, 1, 1_000_000);
    tree::file(&folder.join("one"), 2, 10);
    let (_, received) = world.transfer(&[&film, &folder]);
    tree::assert_same(&film, &world.target().join("film.mov"));
    tree::assert_same(&folder, &world.target().join("photos"));
    let done = received.last("done");
    assert_eq!((done["files"].as_u64(), done["bytes"].as_u64()), (Some(2), Some(1_000_010)));
}

#[test]
fn an_empty_file_and_an_empty_folder_arrive() {
    let world = World::new();
    let (file, folder) = (world.source().join("nothing"), world.source().join("no one"));
    tree::file(&file, 0, 0);
    std::fs::create_dir(&folder).unwrap();
    world.transfer(&[&file, &folder]);
    tree::assert_same(&file, &world.target().join("nothing"));
    tree::assert_same(&folder, &world.target().join("no one"));
}

#[test]
fn present_files_are_not_sent_again() {
    let (world, root) = everything_sent();
    let (_, again) = world.transfer(&[&root]);
    tree::assert_same(&root, &world.target().join("tree"));
    assert_eq!(tree::names(&world.target()).len(), 1, "nothing was renamed");
    assert!(again.all("file").all(|f| f["status"] == "already-here"), "{:?}", again.last("file"));
}
