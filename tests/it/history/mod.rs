//! The metric history from outside: everything that was sent is found again, whatever happened in between.

mod backup;
mod damage;
mod deletion;
mod disk;
mod fleet;
mod formats;
mod golden;
mod golden_formats;
mod late;
mod months;
mod postgres;
mod present_day;
mod processes;
mod rates;
mod reference;
mod restart;
mod retention;
mod same;
mod scene;
mod table;
mod upgrade;
