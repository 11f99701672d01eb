//! Successive shapes of a machine, of this build and of others.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::metric::{Kind, Scale};

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,6}", "\\PC{0,12}"]
}

fn field() -> impl Strategy<Value = Field> {
    let kind = prop_oneof![Just(Kind::Gauge), Just(Kind::Counter), Just(Kind::Last)];
    let scale = prop_oneof![Just(Scale::Whole), Just(Scale::Float), (2_u32..=u32::MAX).prop_map(Scale::Parts)];
    // Some have the number of a known field with another meaning.
    (0_u16..2_000, kind, scale).prop_map(|(number, kind, scale)| Field::new(number, kind, scale))
}

fn fields(most: usize) -> impl Strategy<Value = Vec<Field>> {
    prop::collection::vec(field(), 0..=most).prop_map(|mut fields| {
        let mut seen = HashSet::new();
        fields.retain(|field| seen.insert(*field));
        fields
    })
}

/// This build's schema, and those of builds that measure other things.
fn schema() -> impl Strategy<Value = Arc<Schema>> {
    let lists = prop::collection::btree_map(0_u8..9, fields(3), 0..7);
    let other = (fields(6), fields(2), lists).prop_map(|(machine, core, lists)| {
        let lists = lists.into_iter().map(|(list, fields)| (List(list), fields)).collect();
        Schema { machine, core, lists }.shared()
    });
    let more = fields(3).prop_map(|more| {
        let mut schema = Schema::clone(&Schema::current());
        schema.machine.extend(more.into_iter().filter(|field| field.metric().is_none()));
        schema.shared()
    });
    prop_oneof![3 => Just(Schema::current()), 1 => other, 1 => more]
}

fn series() -> impl Strategy<Value = Arc<Series>> {
    let kind = prop_oneof![Just(Kind::Gauge), Just(Kind::Counter), Just(Kind::Last)];
    (name(), name(), kind, prop::option::of(name()))
        .prop_map(|(name, unit, kind, target)| Arc::new(Series { name, unit, kind, target }))
}

fn entry() -> impl Strategy<Value = Arc<Entry>> {
    (0_u8..8, name(), 0_u32..3).prop_map(|(list, name, nth)| {
        let list = List(list);
        let id = if list == List::CONTAINERS { format!("id-{nth}") } else { String::new() };
        Arc::new(Entry { list, name, id, nth })
    })
}

/// Shapes whose entries appear, disappear, change places, share names, and come from another build.
pub fn shapes() -> impl Strategy<Value = Vec<Arc<Shape>>> {
    let parts = (schema(), 0_u32..5, prop::collection::vec(entry(), 0..8), prop::collection::vec(series(), 0..4));
    let shape = parts.prop_map(|(schema, cores, mut entries, mut series)| {
        entries.sort_by_key(|entry| entry.list);
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.clone()));
        let mut seen = HashSet::new();
        series.retain(|one| seen.insert(one.clone()));
        Arc::new(Shape::with(schema, cores, entries, series))
    });
    prop::collection::vec(shape, 1..4)
}

proptest! {
    #[test]
    fn a_description_says_it_all(shapes in shapes()) {
        for shape in shapes {
            prop_assert_eq!(&Shape::read(shape.described()).unwrap(), &*shape);
        }
    }

    #[test]
    fn a_union_has_the_columns_of_both(shapes in shapes()) {
        let union = shapes.iter().skip(1).fold(Shape::clone(&shapes[0]), |union, shape| union.union(shape));

        let all: HashSet<_> = union.slots().map(crate::frame::Column::from).collect();
        prop_assert_eq!(all.len(), union.width());
        for shape in &shapes {
            let own: Vec<_> = shape.slots().map(crate::frame::Column::from).collect();
            prop_assert!(own.iter().all(|column| all.contains(column)));
        }
    }
}

#[test]
fn version_1_of_the_formats_has_the_fields_that_it_always_had() {
    // Taken from the code of the last build that wrote it: kind and scale by their numbers.
    let fields = |fields: &[Field]| -> Vec<(u16, u64, u64)> {
        fields.iter().map(|field| (field.number, field.kind.number(), field.scale.number())).collect()
    };
    let schema = Schema::version_1();
    let machine = [(0, 0, 100), (1, 0, 100), (2, 2, 1), (3, 0, 1), (4, 2, 1), (5, 0, 1), (6, 0, 100)];
    let machine = [&machine[..], &[(7, 0, 100), (8, 0, 100), (9, 2, 1), (10, 0, 1)]].concat();

    assert_eq!((fields(&schema.machine), fields(&schema.core)), (machine, vec![(11, 0, 100)]));
    let lists: Vec<_> = schema.lists.iter().map(|(list, of)| (list.0, fields(of))).collect();
    let disks = vec![(12, 2, 1), (13, 0, 1), (14, 0, 1), (15, 0, 100)];
    let containers = vec![(21, 0, 100), (22, 0, 1), (23, 1, 1), (24, 1, 1)];
    let counters = |first: u16| vec![(first, 1, 1), (first + 1, 1, 1)];
    let expected = [(0, disks), (1, counters(16)), (2, counters(18)), (3, vec![(20, 0, 10)]), (4, containers)];
    assert_eq!(lists, expected);
}
