//! The requests of the kernel.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::store::{Answer, Content, OddFs, Store};

/// Time for which the kernel may cache an answer: none, because a cache could hide a habit.
const NO_CACHE: Duration = Duration::ZERO;

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
                Some(TimeOrNow::SpecificTime(time)) => self.habits.rounded(time),
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
            let stored = self.habits.stored(name)?;
            let store = &mut *self.lock();
            let key = self.habits.key(store.children(parent)?, &stored);
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
