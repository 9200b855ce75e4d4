import Foundation
import RTC
import TestSupport

@testable import SFU

/// Forwards audio and video of one publisher to some subscribers that report what arrives, in simulated time.
///
/// - Parameters:
///   - subscribers: how many receive.
///   - seconds: the simulated time after the first two seconds, in which everyone connects.
/// - Returns: the number of media packets that subscribers received in this time.
func forward(to subscribers: Int, for seconds: Int64) throws -> UInt64 {
    let room = try SimulatedRoom(seed: 7)
    let publisher = room.client()
    try publisher.publish()
    let watchers = (0..<subscribers).map { _ in room.client() }
    for watcher in watchers { try watcher.watch(slots: 1) }
    try room.connect()
    for watcher in watchers { watcher.subscribe(to: publisher) }
    room.run(2_000)
    func sent() -> UInt64 { UInt64(publisher.camera?.packets ?? 0) + UInt64(publisher.microphone?.packets ?? 0) }
    let before = sent()
    room.run(seconds * 1_000)
    return (sent() - before) * UInt64(subscribers)
}

let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
guard numbers.count == 2, numbers.allSatisfy({ $0 > 0 }) else {
    print("usage: RouterLoop SUBSCRIBERS SECONDS")
    exit(2)
}
print("packets", try forward(to: numbers[0], for: Int64(numbers[1])))
