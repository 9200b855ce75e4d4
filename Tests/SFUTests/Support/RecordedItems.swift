@testable import SFU

/// Reads what a router has sent to the recorder.
struct RecordedItems {
    var messages: [RecordingMessage] = []
    var audio: [RecordingRingReader.Packet] = []
    var video: [RecordingRingReader.Packet] = []
    mutating func read(_ reader: RecordingRingReader, of id: UInt32 = 7) {
        while let item = reader.next() {
            switch item {
            case .message(let recording, let message) where recording == id: messages.append(message)
            case .packet(let packet) where packet.recording == id:
                guard packet.isVideo else {
                    audio.append(packet)
                    continue
                }
                video.append(packet)
            default: break
            }
        }
        reader.release()
    }

    var formats: [RecordingMessage] { messages.filter { if case .source = $0 { true } else { false } } }
}
