//! A FUSE file system in memory with the habits of other systems' file systems, for one test.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use super::{is_root, skipped, unchecked};
use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

/// Differences from an ordinary Linux file system. None has nameless files, attributes, preallocation
/// or holes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Names that differ only in case are one name; the first spelling is kept.
    pub folds_case: bool,
    /// U+00E9 is the same as U+0065 U+0301, as in Unicode, and U+00C9 as U+0045 U+0301.
    pub normalises: bool,
    /// A long name has a second, short name, as on FAT: `LONGFI~1.TXT`.
    pub has_short_names: bool,
    /// Longer names are cut to this many bytes.
    pub cuts_names: Option<usize>,
    /// Longer names are refused.
    pub refuses_long_names: Option<usize>,
    /// Names of FAT and NTFS only: no `:*?"<>|\`, no dot or space at the end.
    pub refuses_characters: bool,
    /// The inode follows from the path as it was looked up.
    pub inodes_by_path: bool,
    /// No hard or symbolic links.
    pub no_links: bool,
    /// No `RENAME_NOREPLACE`.
    pub no_noreplace: bool,
    /// A change of the permissions fails.
    pub no_modes: bool,
    /// Times are multiples of 2 s.
    pub coarse_times: bool,
    /// Larger files fail with `EFBIG`.
    pub size_max: Option<u64>,
}

/// A mounted file system. Drop unmounts it.
pub struct OddDisk {
    at: PathBuf,
    _session: BackgroundSession,
}

/// Mounts an empty file system at the folder `at`. Reports the reason if that is impossible.
pub fn odd_disk(habits: Habits, at: &Path) -> Option<OddDisk> {
    if !is_root() {
        skipped("mounting a FUSE file system needs root");
        return None;
    }
    if !Path::new("/dev/fuse").exists() {
        skipped("there is no /dev/fuse");
        return None;
    }
    fs::create_dir_all(at).unwrap();
    match fuser::spawn_mount(OddFs::new(habits), at, &Config::default()) {
        Ok(session) => Some(OddDisk { at: at.to_owned(), _session: session }),
        Err(error) => {
            unchecked(&format!("a FUSE file system cannot be mounted: {error}"));
            None
        }
    }
}

impl Drop for OddDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// By folded name: the spelling and the object.
type Children = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

enum Content {
    Dir(Children),
    File(Vec<u8>),
    Link(Vec<u8>),
}

struct Object {
    content: Content,
    mode: u32,
    mtime: SystemTime,
    ctime: SystemTime,
    links: u32,
}

#[derive(Default)]
struct Store {
    objects: HashMap<u64, Object>,
    /// By inode: the object and its path.
    inodes: HashMap<u64, (u64, Vec<u8>)>,
    by_path: HashMap<Vec<u8>, u64>,
    last: u64,
}

struct OddFs {
    habits: Habits,
    store: Mutex<Store>,
}

type Answer<T> = Result<T, Errno>;

const NO_CACHE: Duration = Duration::ZERO;

impl Store {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn object(&mut self, inode: INodeNo) -> Answer<&mut Object> {
        let (object, _) = self.inodes.get(&inode.0).ok_or(Errno::ESTALE)?;
        self.objects.get_mut(object).ok_or(Errno::ESTALE)
    }

    fn children(&mut self, inode: INodeNo) -> Answer<&mut Children> {
        match &mut self.object(inode)?.content {
            Content::Dir(children) => Ok(children),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn unlink_object(&mut self, object: u64) {
        if let Some(object) = self.objects.get_mut(&object) {
            object.links = object.links.saturating_sub(1);
            object.ctime = SystemTime::now();
        }
    }
}

impl OddFs {
    fn new(habits: Habits) -> Self {
        let mut store = Store { last: 1, ..Store::default() };
        let now = SystemTime::now();
        let content = Content::Dir(BTreeMap::new());
        let root = Object { content, mode: 0o755, mtime: now, ctime: now, links: 2 };
        store.objects.insert(1, root);
        store.inodes.insert(1, (1, Vec::new()));
        Self { habits, store: Mutex::new(store) }
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }

    /// Returns the name as it is stored.
    fn stored(&self, name: &OsStr) -> Answer<Vec<u8>> {
        let mut name = name.as_bytes().to_vec();
        if self.habits.refuses_long_names.is_some_and(|max| name.len() > max) {
            return Err(Errno::ENAMETOOLONG);
        }
        let ends_badly = name.ends_with(b".") || name.ends_with(b" ");
        let is_bad = |byte: &u8| b":*?\"<>|\\".contains(byte) || *byte < 32;
        if self.habits.refuses_characters && (ends_badly || name.iter().any(is_bad)) {
            return Err(Errno::EINVAL);
        }
        name.truncate(self.habits.cuts_names.unwrap_or(name.len()));
        Ok(name)
    }

    /// Returns the key of the child that the stored form of a name means, or its own.
    fn key(&self, children: &Children, stored: &[u8]) -> Vec<u8> {
        let key = self.folded(stored);
        if !self.habits.has_short_names || children.contains_key(&key) {
            return key;
        }
        let short = stored.to_ascii_uppercase();
        let meant =
            children.iter().find(|(_, (spelling, _))| short_name(spelling) == Some(short.clone()));
        meant.map_or(key, |(meant, _)| meant.clone())
    }

    /// Returns the form in which names are compared.
    fn folded(&self, name: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(name) else { return name.to_vec() };
        let mut text = text.to_owned();
        if self.habits.normalises {
            text = text.replace('\u{e9}', "e\u{301}").replace('\u{c9}', "E\u{301}");
        }
        if self.habits.folds_case {
            text = text.to_uppercase().to_lowercase();
        }
        text.into_bytes()
    }

    fn now(&self) -> SystemTime {
        self.rounded(SystemTime::now())
    }

    fn rounded(&self, time: SystemTime) -> SystemTime {
        if !self.habits.coarse_times {
            return time;
        }
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs() / 2 * 2)
    }

    /// Returns the inode of `object`, looked up as `name` in `parent`.
    fn inode(&self, store: &mut Store, parent: INodeNo, name: &[u8], object: u64) -> u64 {
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

    fn attributes(store: &mut Store, inode: u64) -> Answer<FileAttr> {
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

    fn find(&self, parent: INodeNo, name: &OsStr) -> Answer<FileAttr> {
        let stored = self.stored(name)?;
        let store = &mut *self.lock();
        let key = self.key(store.children(parent)?, &stored);
        let object = store.children(parent)?.get(&key).ok_or(Errno::ENOENT)?.1;
        let inode = self.inode(store, parent, name.as_bytes(), object);
        Self::attributes(store, inode)
    }

    fn add(&self, parent: INodeNo, name: &OsStr, content: Content, mode: u32) -> Answer<FileAttr> {
        let stored = self.stored(name)?;
        let store = &mut *self.lock();
        let key = self.key(store.children(parent)?, &stored);
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

    fn remove(&self, parent: INodeNo, name: &OsStr, folder: bool) -> Answer<()> {
        let stored = self.stored(name)?;
        let store = &mut *self.lock();
        let key = self.key(store.children(parent)?, &stored);
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

    fn move_to(
        &self,
        (parent, name): (INodeNo, &OsStr),
        (to, new_name): (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Answer<()> {
        let (old, stored) = (self.stored(name)?, self.stored(new_name)?);
        if !flags.is_empty() && self.habits.no_noreplace {
            return Err(Errno::EINVAL);
        }
        let store = &mut *self.lock();
        let key = self.key(store.children(parent)?, &old);
        let new_key = self.key(store.children(to)?, &stored);
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

/// Returns the short name of a name whose stem is longer than eight bytes.
fn short_name(name: &[u8]) -> Option<Vec<u8>> {
    let dot = name.iter().rposition(|byte| *byte == b'.').unwrap_or(name.len());
    let (stem, extension) = name.split_at(dot);
    let short = [stem.get(..6)?, b"~1", &extension[..extension.len().min(4)]].concat();
    (stem.len() > 8).then(|| short.to_ascii_uppercase())
}

fn entry(reply: ReplyEntry, answer: Answer<FileAttr>) {
    match answer {
        Ok(attributes) => reply.entry(&NO_CACHE, &attributes, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn empty(reply: ReplyEmpty, answer: Answer<()>) {
    match answer {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn attributes(reply: ReplyAttr, answer: Answer<FileAttr>) {
    match answer {
        Ok(attributes) => reply.attr(&NO_CACHE, &attributes),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for OddFs {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.find(parent, name));
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(reply, Self::attributes(&mut self.lock(), inode.0));
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = |store: &mut Store| {
            let object = store.object(inode)?;
            if let Some(mode) = mode {
                if self.habits.no_modes {
                    return Err(Errno::EPERM);
                }
                object.mode = mode;
            }
            if let Some(size) = size {
                if self.habits.size_max.is_some_and(|max| size > max) {
                    return Err(Errno::EFBIG);
                }
                if let Content::File(bytes) = &mut object.content {
                    bytes.resize(size as usize, 0);
                    object.mtime = self.now();
                }
            }
            object.mtime = match mtime {
                Some(TimeOrNow::SpecificTime(time)) => self.rounded(time),
                Some(TimeOrNow::Now) => self.now(),
                None => object.mtime,
            };
            object.ctime = self.now();
            Self::attributes(store, inode.0)
        };
        let answer = set(&mut self.lock());
        attributes(reply, answer);
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.lock().object(inode).map(|object| &object.content) {
            Ok(Content::Link(target)) => reply.data(target),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        entry(reply, self.add(parent, name, Content::Dir(BTreeMap::new()), mode));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.remove(parent, name, false));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.remove(parent, name, true));
    }

    fn symlink(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        if self.habits.no_links {
            return reply.error(Errno::EPERM);
        }
        let target = Content::Link(target.as_os_str().as_bytes().to_vec());
        entry(reply, self.add(parent, name, target, 0o777));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.move_to((parent, name), (to, new_name), flags));
    }

    fn link(&self, _: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if self.habits.no_links {
            return reply.error(Errno::EPERM);
        }
        let link = || {
            let stored = self.stored(name)?;
            let store = &mut *self.lock();
            let key = self.key(store.children(parent)?, &stored);
            let object = store.inodes.get(&inode.0).ok_or(Errno::ESTALE)?.0;
            if store.children(parent)?.contains_key(&key) {
                return Err(Errno::EEXIST);
            }
            store.children(parent)?.insert(key, (stored, object));
            store.object(inode)?.links += 1;
            let inode = self.inode(store, parent, name.as_bytes(), object);
            Self::attributes(store, inode)
        };
        entry(reply, link());
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let mut answer = self.add(parent, name, Content::File(Vec::new()), mode);
        if matches!(answer, Err(Errno::EEXIST)) && flags & libc::O_EXCL == 0 {
            answer = self.find(parent, name);
        }
        match answer {
            Ok(attributes) => reply.created(
                &NO_CACHE,
                &attributes,
                Generation(0),
                FileHandle(0),
                FopenFlags::empty(),
            ),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.lock().object(inode).map(|object| &object.content) {
            Ok(Content::File(bytes)) => {
                let begin = bytes.len().min(offset as usize);
                let end = bytes.len().min(begin + size as usize);
                reply.data(&bytes[begin..end]);
            }
            Ok(_) => reply.error(Errno::EISDIR),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let end = offset + data.len() as u64;
        if self.habits.size_max.is_some_and(|max| end > max) {
            return reply.error(Errno::EFBIG);
        }
        let store = &mut *self.lock();
        let Ok(object) = store.object(inode) else { return reply.error(Errno::ESTALE) };
        let Content::File(bytes) = &mut object.content else { return reply.error(Errno::EISDIR) };
        bytes.resize(bytes.len().max(end as usize), 0);
        bytes[offset as usize..end as usize].copy_from_slice(data);
        object.mtime = self.now();
        object.ctime = object.mtime;
        reply.written(data.len() as u32);
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let store = &mut *self.lock();
        let children = match store.children(inode) {
            Ok(children) => children.values().cloned().collect::<Vec<_>>(),
            Err(errno) => return reply.error(errno),
        };
        for (n, (name, object)) in children.into_iter().enumerate().skip(offset as usize) {
            let kind = match &store.objects[&object].content {
                Content::Dir(_) => FileType::Directory,
                Content::File(_) => FileType::RegularFile,
                Content::Link(_) => FileType::Symlink,
            };
            let inode = self.inode(store, inode, &name, object);
            if reply.add(INodeNo(inode), n as u64 + 1, kind, OsStr::from_bytes(&name)) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let name_max = self.habits.refuses_long_names.unwrap_or(255) as u32;
        reply.statfs(1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, name_max, 4096);
    }

    fn init(&mut self, _: &Request, _: &mut fuser::KernelConfig) -> io::Result<()> {
        Ok(())
    }
}
