//! The present shapes of servers. Machines of one kind share a shape.

use std::collections::HashSet;
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::{Mutex, MutexGuard};
use signalbox_history::open::Open;
use signalbox_history::shape::Shape;
use signalbox_protocol::Sample;
use uuid::Uuid;

/// From this many bytes of known shapes on, unused ones are removed.
const FEW_BYTES: usize = 1024 * 1024;

/// The most bytes of shapes that are kept to be shared: a thousand kinds of machines with a hundred entries each. If every
/// server has its own large shape, there is nothing to share.
const MAX_BYTES: usize = 16 * 1024 * 1024;

#[derive(Default)]
pub struct Shapes {
    by_server: DashMap<Uuid, Arc<Shape>>,
    known: Mutex<SharedShapes>,
}

/// Shapes that can be shared.
#[derive(Default)]
struct SharedShapes {
    shapes: HashSet<Arc<Shape>>,
    bytes: usize,
    /// The bytes that were in use when unused shapes were last removed.
    bytes_alive: usize,
}

impl Shapes {
    /// Returns the shape of a sample: the server's previous one, if that still fits.
    pub fn of(&self, server_id: Uuid, sample: &Sample, open: &Open) -> Arc<Shape> {
        if let Some(shape) = self.by_server.get(&server_id)
            && shape.fits(sample, open)
        {
            return shape.clone();
        }
        let shape = self.known().share(Arc::new(Shape::with_open(sample, open)));
        self.by_server.insert(server_id, shape.clone());
        shape
    }

    /// Returns the shape of a server's last sample.
    pub fn last(&self, server_id: Uuid) -> Option<Arc<Shape>> {
        self.by_server.get(&server_id).map(|shape| shape.clone())
    }

    /// Records the shape of a server's sample. Returns the shared one that equals it.
    pub fn share(&self, server_id: Uuid, shape: Arc<Shape>) -> Arc<Shape> {
        if self.by_server.get(&server_id).is_some_and(|last| Arc::ptr_eq(&last, &shape)) {
            return shape;
        }
        let shape = self.known().share(shape);
        self.by_server.insert(server_id, shape.clone());
        shape
    }

    /// Removes a server.
    pub fn forget(&self, server_id: Uuid) {
        if self.by_server.remove(&server_id).is_some() {
            self.forget_dead();
        }
    }

    /// Removes shapes that no server and no sample uses any more.
    pub fn forget_dead(&self) {
        self.known().forget_dead();
    }

    fn known(&self) -> MutexGuard<'_, SharedShapes> {
        self.known.lock()
    }
}

impl SharedShapes {
    fn share(&mut self, shape: Arc<Shape>) -> Arc<Shape> {
        if let Some(shape) = self.shapes.get(&shape) {
            return shape.clone();
        }
        let bytes = shape.bytes();
        // Not at every shape: the known bytes must have doubled since the last removal.
        if self.bytes + bytes > FEW_BYTES.max(2 * self.bytes_alive) {
            self.forget_dead();
        }
        if self.bytes + bytes <= MAX_BYTES {
            self.bytes += bytes;
            self.shapes.insert(shape.clone());
        }
        shape
    }

    fn forget_dead(&mut self) {
        let mut bytes = 0;
        self.shapes.retain(|shape| {
            let is_alive = Arc::strong_count(shape) > 1;
            bytes += if is_alive { shape.bytes() } else { 0 };
            is_alive
        });
        (self.bytes, self.bytes_alive) = (bytes, bytes);
        self.shapes.shrink_to(2 * self.shapes.len());
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::sample::ContainerUsage;

    use super::*;

    const SERVER: Uuid = Uuid::from_u128(7);

    /// A sample with containers that no other sample has.
    fn sample(number: usize) -> Sample {
        let container = |nth: usize| ContainerUsage {
            id: format!("{number:032x}{nth:032x}"),
            name: format!("build-{number}-{nth}"),
            ..ContainerUsage::default()
        };
        Sample { containers: (0..1_024).map(container).collect(), ..Sample::default() }
    }

    #[test]
    fn unused_shapes_are_bounded_by_bytes() {
        let shapes = Shapes::default();

        for number in 0..200 {
            shapes.of(SERVER, &sample(number), &Open::default());
        }

        let known = shapes.known();
        let of_one = Shape::of(&sample(0)).bytes();
        assert!(known.bytes <= FEW_BYTES + of_one, "{} bytes", known.bytes);
        assert_eq!(known.bytes, known.shapes.iter().map(|shape| shape.bytes()).sum::<usize>());
    }

    #[test]
    fn shared_shapes_are_bounded_and_every_server_still_gets_its_own() {
        let shapes = Shapes::default();

        let of = |number: usize| shapes.of(Uuid::from_u128(number as u128), &sample(number), &Open::default());
        let held: Vec<Arc<Shape>> = (0..200).map(of).collect();

        assert!(shapes.known().bytes <= MAX_BYTES);
        assert!(held.iter().enumerate().all(|(number, shape)| shape.fits(&sample(number), &Open::default())));
    }

    #[test]
    fn a_removed_server_leaves_nothing() {
        let shapes = Shapes::default();
        shapes.of(SERVER, &sample(1), &Open::default());

        shapes.forget(SERVER);

        let known = shapes.known();
        assert_eq!((known.bytes, known.shapes.len()), (0, 0));
    }
}
