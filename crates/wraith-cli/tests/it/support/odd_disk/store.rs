//! The objects of the file system, and the operations that find, add, remove and move them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo, RenameFlags};

use super::Habits;

/// By folded name: the spelling and the object.
pub(super) type Children = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

pub(super) enum Content {
    Dir(Children),
    File(Vec<u8>),
    Link(Vec<u8>),
}

pub(super) struct Object {
    pub(super) content: Content,
    pub(super) mode: u32,
    pub(super) mtime: SystemTime,
    pub(super) ctime: SystemTime,
    pub(super) links: u32,
}

#[derive(Default)]
pub(super) struct Store {
    pub(super) objects: HashMap<u64, Object>,
    /// By inode: the object and its path.
    pub(super) inodes: HashMap<u64, (u64, Vec<u8>)>,
    by_path: HashMap<Vec<u8>, u64>,
    last: u64,
}

pub(super) struct OddFs {
    pub(super) habits: Habits,
    store: Mutex<Store>,
}

pub(super) type Answer<T> = Result<T, Errno>;

impl Store {
    pub(super) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn object(&mut self, inode: INodeNo) -> Answer<&mut Object> {
        let (object, _) = self.inodes.get(&inode.0).ok_or(Errno::ESTALE)?;
        self.objects.get_mut(object).ok_or(Errno::ESTALE)
    }

    pub(super) fn children(&mut self, inode: INodeNo) -> Answer<&mut Children> {
        match &mut self.object(inode)?.content {
            Content::Dir(children) => Ok(children),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn unlink_object(&mut self, object: u64) {
        if let Some(object) = self.objects.get_mut(&object) {
            object.links = object.links.saturating_sub(1);
            object.ctime = SystemTime::now();
        }
    }
}

impl OddFs {
    pub(super) fn new(habits: Habits) -> Self {
        let mut store = Store { last: 1, ..Store::default() };
        let now = SystemTime::now();
        let content = Content::Dir(BTreeMap::new());
        let root = Object { content, mode: 0o755, mtime: now, ctime: now, links: 2 };
        store.objects.insert(1, root);
        store.inodes.insert(1, (1, Vec::new()));
        Self { habits, store: Mutex::new(store) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }

    pub(super) fn now(&self) -> SystemTime {
        self.habits.rounded(SystemTime::now())
    }

    /// Returns the inode of `object`, looked up as `name` in `parent`.
    pub(super) fn inode(
        &self,
        store: &mut Store,
        parent: INodeNo,
        name: &[u8],
        object: u64,
    ) -> u64 {
        if !self.habits.inodes_by_path {
            store.inodes.insert(object, (object, Vec::new()));
            return object;
        }
        let mut path = store.inodes[&parent.0].1.clone();
        path.push(b'/');
        path.extend_from_slice(name);
        if let Some(&inode) = store.by_path.get(&path)
            && store.inodes[&inode].0 == object
        {
            return inode;
        }
        let inode = store.number();
        store.by_path.insert(path.clone(), inode);
        store.inodes.insert(inode, (object, path));
        inode
    }

    pub(super) fn attributes(store: &mut Store, inode: u64) -> Answer<FileAttr> {
        let object = store.object(INodeNo(inode))?;
        let (kind, size) = match &object.content {
            Content::Dir(_) => (FileType::Directory, 0),
            Content::File(bytes) => (FileType::RegularFile, bytes.len() as u64),
            Content::Link(target) => (FileType::Symlink, target.len() as u64),
        };
        Ok(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size.div_ceil(512),
            atime: object.mtime,
            mtime: object.mtime,
            ctime: object.ctime,
            crtime: object.ctime,
            kind,
            perm: (object.mode & 0o7777) as u16,
            nlink: object.links,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    pub(super) fn find(&self, parent: INodeNo, name: &OsStr) -> Answer<FileAttr> {
        let stored = self.habits.stored(name)?;
        let store = &mut *self.lock();
        let key = self.habits.key(store.children(parent)?, &stored);
        let object = store.children(parent)?.get(&key).ok_or(Errno::ENOENT)?.1;
        let inode = self.inode(store, parent, name.as_bytes(), object);
        Self::attributes(store, inode)
    }

    pub(super) fn add(
        &self,
        parent: INodeNo,
        name: &OsStr,
        content: Content,
        mode: u32,
    ) -> Answer<FileAttr> {
        let stored = self.habits.stored(name)?;
        let store = &mut *self.lock();
        let key = self.habits.key(store.children(parent)?, &stored);
        if store.children(parent)?.contains_key(&key) {
            return Err(Errno::EEXIST);
        }
        let (number, now) = (store.number(), self.now());
        let links = if matches!(content, Content::Dir(_)) { 2 } else { 1 };
        store.objects.insert(number, Object { content, mode, mtime: now, ctime: now, links });
        store.children(parent)?.insert(key, (stored, number));
        store.object(parent)?.mtime = now;
        let inode = self.inode(store, parent, name.as_bytes(), number);
        Self::attributes(store, inode)
    }

    pub(super) fn remove(&self, parent: INodeNo, name: &OsStr, folder: bool) -> Answer<()> {
        let stored = self.habits.stored(name)?;
        let store = &mut *self.lock();
        let key = self.habits.key(store.children(parent)?, &stored);
        let object = store.children(parent)?.get(&key).ok_or(Errno::ENOENT)?.1;
        match (&store.objects[&object].content, folder) {
            (Content::Dir(children), true) if !children.is_empty() => return Err(Errno::ENOTEMPTY),
            (Content::Dir(_), false) => return Err(Errno::EISDIR),
            (Content::File(_) | Content::Link(_), true) => return Err(Errno::ENOTDIR),
            _ => {}
        }
        store.children(parent)?.remove(&key);
        store.unlink_object(object);
        if folder {
            store.unlink_object(object);
        }
        Ok(())
    }

    pub(super) fn move_to(
        &self,
        (parent, name): (INodeNo, &OsStr),
        (to, new_name): (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Answer<()> {
        let (old, stored) = (self.habits.stored(name)?, self.habits.stored(new_name)?);
        if !flags.is_empty() && self.habits.no_noreplace {
            return Err(Errno::EINVAL);
        }
        let store = &mut *self.lock();
        let key = self.habits.key(store.children(parent)?, &old);
        let new_key = self.habits.key(store.children(to)?, &stored);
        let object = store.children(parent)?.get(&key).ok_or(Errno::ENOENT)?.1;
        let there = store.children(to)?.get(&new_key).cloned();
        let mut spelling = stored;
        if let Some((old_spelling, old)) = there.filter(|(_, old)| *old != object) {
            if flags.contains(RenameFlags::RENAME_NOREPLACE) {
                return Err(Errno::EEXIST);
            }
            if let Content::Dir(children) = &store.objects[&old].content {
                let errno = if children.is_empty() { Errno::EISDIR } else { Errno::ENOTEMPTY };
                return Err(errno);
            }
            store.unlink_object(old);
            spelling = old_spelling;
        }
        store.children(parent)?.remove(&key);
        store.children(to)?.insert(new_key, (spelling, object));
        if let Some(object) = store.objects.get_mut(&object) {
            object.ctime = self.now();
        }
        Ok(())
    }
}
