import RTC

/// A robot's media: 50 audio and 100 video packets per second. Each packet has its publisher, its number and its
/// sending time, so that receivers can find missing, late and foreign packets.
final class MediaSource {
    static let audioType: UInt8 = 111
    static let videoType: UInt8 = 96
    static let repairType: UInt8 = 97
    private static let packetsPerFrame = 4
    private static let audioInterval = MediaInterval.milliseconds(20)
    private static let frameInterval = MediaInterval.milliseconds(40)
    private static let reportInterval = MediaInterval.seconds(1)
    private static let maxKept = 1024

    let mark: UInt64
    let audioSSRC: UInt32
    let videoSSRC: UInt32
    let repairSSRC: UInt32
    /// The number of packets sent so far, which is also the number of the next packet.
    private(set) var audioCount: UInt32 = 0
    private(set) var videoCount: UInt32 = 0
    /// The number of keyframes and of retransmissions that the server has requested.
    private(set) var keyframesAsked = 0
    private(set) var retransmissionsRequested = 0
    private var wantsKeyframe = true
    /// The most recent sequence number of each SSRC. Forged packets continue from these numbers.
    var sequences: [UInt32: UInt16] {
        [audioSSRC: audioSequence, videoSSRC: videoSequence, repairSSRC: repairSequence]
    }
    private var audioSequence: UInt16
    private var videoSequence: UInt16
    private var repairSequence: UInt16 = 1
    private var transportSequence: UInt16 = 1
    private var picture: UInt16 = 0
    private var audioDue: MediaTime
    private var frameDue: MediaTime
    private var reportDue: MediaTime
    private var kept: [UInt16: (timestamp: UInt32, marker: Bool, payload: [UInt8])] = [:]

    init(using random: inout some RandomNumberGenerator, now: MediaTime) {
        mark = random.next()
        audioSSRC = random.next()
        videoSSRC = random.next()
        repairSSRC = random.next()
        audioSequence = UInt16.random(in: 0..<0x8000, using: &random)
        videoSequence = UInt16.random(in: 0..<0x8000, using: &random)
        (audioDue, frameDue, reportDue) = (now, now, now + .milliseconds(100))
    }

    var sections: [OfferedMedia] {
        let stream = MediaStreamID(stream: "robot", track: nil)
        return [
            .audio(mid: "a", .sendonly, source: LocalSource(ssrc: audioSSRC, rtxSSRC: nil, msid: stream)),
            .video(mid: "v", .sendonly, source: LocalSource(ssrc: videoSSRC, rtxSSRC: repairSSRC, msid: stream)),
        ]
    }

    var nextDue: MediaTime { min(audioDue, frameDue) }

    // MARK: Sending

    func sendDue(over line: MediaLine, now: MediaTime) {
        guard line.isConnected else { return }
        // If the machine paused, continue from the current time without catching up, like a microphone.
        let longestPause = MediaInterval.milliseconds(200)
        if now - audioDue > longestPause { audioDue = now }
        if now - frameDue > longestPause { frameDue = now }
        while audioDue <= now {
            audioDue = audioDue + Self.audioInterval
            sendAudio(over: line, now: now)
        }
        while frameDue <= now {
            frameDue = frameDue + Self.frameInterval
            sendFrame(over: line, now: now)
        }
        guard reportDue <= now else { return }
        reportDue = now + Self.reportInterval
        report(over: line, now: now)
    }

    private func sendAudio(over line: MediaLine, now: MediaTime) {
        let payload = [0x78] + label(audioCount, now) + [UInt8](repeating: 0x55, count: 60)
        audioCount &+= 1
        audioSequence &+= 1
        let timestamp = UInt32(truncatingIfNeeded: now.nanoseconds / 1000 * 48 / 1000)
        line.send(
            header: { memory in
                header(memory, Self.audioType, marker: false, audioSequence, timestamp, audioSSRC) {
                    $0.addAudioLevel(.init(level: 30, voice: true), id: OfferedMedia.id(.audioLevel))
                }
            }, payload: payload)
    }

    private func sendFrame(over line: MediaLine, now: MediaTime) {
        let isKeyframe = wantsKeyframe
        wantsKeyframe = false
        picture = (picture &+ 1) & 0x7fff
        let timestamp = UInt32(truncatingIfNeeded: now.nanoseconds / 1000 * 90 / 1000)
        for part in 0..<Self.packetsPerFrame {
            // RFC 7741 §4.2: an extended descriptor with a 15-bit picture ID; S at the start of the frame.
            let descriptor: [UInt8] = [
                part == 0 ? 0x90 : 0x80, 0x80, 0x80 | UInt8(picture >> 8), UInt8(truncatingIfNeeded: picture),
            ]
            // RFC 6386 §9.1: the lowest bit is 0 for keyframes.
            let payload =
                descriptor + [isKeyframe ? 0x10 : 0x11] + label(videoCount, now) + [UInt8](repeating: 0xaa, count: 640)
            videoCount &+= 1
            videoSequence &+= 1
            let marker = part == Self.packetsPerFrame - 1
            kept[videoSequence] = (timestamp, marker, payload)
            kept[videoSequence &- UInt16(Self.maxKept)] = nil
            line.send(
                header: { memory in
                    header(memory, Self.videoType, marker: marker, videoSequence, timestamp, videoSSRC)
                }, payload: payload)
        }
    }

    private func header(
        _ memory: UnsafeMutableRawBufferPointer, _ type: UInt8, marker: Bool, _ sequence: UInt16, _ timestamp: UInt32,
        _ ssrc: UInt32, _ more: (inout RTPHeaderWriter) -> Void = { _ in }
    ) -> Int {
        var writer = RTPHeaderWriter(
            into: memory, payloadType: type, marker: marker, sequenceNumber: sequence, timestamp: timestamp, ssrc: ssrc)
        writer.addTransportSequenceNumber(transportSequence, id: OfferedMedia.id(.transportWideCC))
        transportSequence &+= 1
        more(&writer)
        return writer.finish()
    }

    /// Encodes the publisher, the packet's number and the time in 20 bytes.
    private func label(_ count: UInt32, _ now: MediaTime) -> [UInt8] {
        withUnsafeBytes(of: (mark.bigEndian)) { Array($0) } + withUnsafeBytes(of: count.bigEndian) { Array($0) }
            + withUnsafeBytes(of: now.nanoseconds.bigEndian) { Array($0) }
    }

    private func report(over line: MediaLine, now: MediaTime) {
        line.sendControl { writer in
            for (ssrc, rate, count) in [(audioSSRC, Int64(48), audioCount), (videoSSRC, 90, videoCount)] {
                let info = RTCP.SenderInfo(
                    ssrc: ssrc, ntp: NTPTime(now, origin: NTPTime(0xe000_0000 << 32)),
                    rtpTimestamp: UInt32(truncatingIfNeeded: now.nanoseconds / 1000 * rate / 1000), packetCount: count,
                    octetCount: count &* 600)
                RTCP.writeSenderReport(info, to: &writer)
            }
            RTCP.writeSourceDescription(ssrc: audioSSRC, cname: "robot", to: &writer)
        }
    }

    // MARK: Server requests

    func take(control bytes: UnsafeRawBufferPointer, over line: MediaLine) {
        for packet in RTCPCompound(bytes).map({ Array($0) }) ?? [] {
            switch packet {
            case .pli(let request) where request.media == videoSSRC:
                keyframesAsked += 1
                wantsKeyframe = true
            case .nack(let nack) where nack.media == videoSSRC:
                for sequence in nack.lost { sendAgain(sequence, over: line) }
            default: break
            }
        }
    }

    /// RFC 4588 §4.
    private func sendAgain(_ sequence: UInt16, over line: MediaLine) {
        retransmissionsRequested += 1
        guard let packet = kept[sequence] else { return }
        repairSequence &+= 1
        line.send(
            header: { memory in
                header(memory, Self.repairType, marker: packet.marker, repairSequence, packet.timestamp, repairSSRC)
            }, prefix: [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)], payload: packet.payload)
    }
}

extension OfferedMedia {
    /// The ID of a header extension in the robots' offers.
    static func id(_ name: HeaderExtension) -> UInt8 { extensions[name] ?? 0 }
}
