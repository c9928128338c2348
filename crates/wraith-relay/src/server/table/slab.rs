//! A slab: values with small numbers that are reused after removal.

/// Values by number, with a free list.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub fn insert(&mut self, value: T) -> usize {
        if let Some(i) = self.free.pop() {
            self.slots[i] = Some(value);
            return i;
        }
        self.slots.push(Some(value));
        self.slots.len() - 1
    }

    pub fn get(&self, i: usize) -> Option<&T> {
        self.slots.get(i)?.as_ref()
    }

    pub fn get_mut(&mut self, i: usize) -> Option<&mut T> {
        self.slots.get_mut(i)?.as_mut()
    }

    pub fn remove(&mut self, i: usize) -> Option<T> {
        let value = self.slots.get_mut(i)?.take()?;
        self.free.push(i);
        Some(value)
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.slots.iter().enumerate().filter_map(|(i, slot)| Some((i, slot.as_ref()?)))
    }
}
