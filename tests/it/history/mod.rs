//! The metric history from outside: what was sent is found again, whatever became of it meanwhile.

mod damage;
mod late;
mod reference;
mod retention;
mod same;
mod scene;
mod table;
