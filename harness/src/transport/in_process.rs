//! In-process peers (being written).
use super::*;
pub struct InProcessConnection;
impl InProcessConnection {
    pub fn new(_m: Box<dyn peerproof_reference::machine::Machine>, _b: &crate::budget::Budget) -> Self {
        Self
    }
}
impl Connection for InProcessConnection {
    fn queue(&mut self, _: Vec<u8>, _: Chunking) {}
    fn close_stdin(&mut self) {}
    fn pump(&mut self, _: Until, _: Duration, _: &mut dyn Log) -> Pumped {
        Pumped::Gone
    }
    fn signal(&mut self, _: &str, _: &mut dyn Log) {}
    fn memory_hwm_bytes(&mut self) -> Option<u64> {
        None
    }
    fn pid(&self) -> Option<i32> {
        None
    }
    fn exit(&self) -> Option<Exit> {
        None
    }
    fn now_us(&self) -> u64 {
        0
    }
    fn finish(&mut self, _: &mut dyn Log) {}
}
