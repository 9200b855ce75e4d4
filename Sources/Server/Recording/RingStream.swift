import MediaFiles
import RTC
import SFU

/// A reader of one stream in the routers' rings: a file of an archive, or a stream of a broadcast.
///
/// Each reader has a tap of its own in the routers, also if an archive and a broadcast, or two archives, contain the same stream:
/// they may want another layer, and other tracks, and begin and end on their own. A second tap costs a copy of each packet.
///
/// It belongs to the recorder's thread.
protocol RingStream: AnyObject {
    /// The id in the routers' rings.
    var number: UInt32 { get }
    func receive(_ packet: RecordingRingReader.Packet, now: MediaTime)
    func receive(_ message: RecordingMessage, now: MediaTime)
    /// Performs what is due. Called about every 250 ms, or more often.
    func tick(now: MediaTime)
}

extension RecordingRingReader.Packet {
    /// The packet with a copy of its payload, to be put into order.
    var orderly: PacketOrder.Packet {
        PacketOrder.Packet(
            number: number, timestamp: timestamp, marker: marker, payload: Array(payload), arrival: arrivedAt)
    }
}
