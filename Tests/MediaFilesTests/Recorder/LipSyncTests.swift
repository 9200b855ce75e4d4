import Foundation
import RTC
import TestSupport
import Testing

@testable import MediaFiles

/// Records flashes and beeps that ffmpeg encoded, from packets, and lets ffmpeg decode the file.
@Suite(
    "Lip sync of recordings",
    .enabled(if: FFmpegTools.areHere, "ffmpeg is not installed; scripts/browser-setup does that"))
struct LipSyncTests {
    private static let seconds = 12
    /// The publisher's clock is 200 ppm fast, and its sound card 150 ppm slow.
    private static let (clock, card) = (1 + 200e-6, 1 - 150e-6)

    /// Nothing that is sent in this time arrives.
    private static let outage = 5.3..<5.4

    /// A packet on its way. Times are in seconds since the stream began.
    private struct Packet {
        var isVideo: Bool
        var sent: Double
        var arrival: Double
        var packet: PacketOrder.Packet
    }

    @Test(
        "each flash and its beep are within 40 ms, with drift, losses and reordering, and ffmpeg decodes without errors"
    )
    func flashesAndBeeps() throws {
        let seed = UInt64.random(in: 0...999_999)
        print("lip sync: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let packets = try Self.packets(&random).sorted { $0.arrival < $1.arrival }
        let bytes = try Self.record(packets, &random)
        let (flashes, beeps) = try FFmpegTools.withFile(bytes) { try (Self.flashes($0), Self.beeps($0)) }
        // The outage of 100 ms costs the flashes until the next keyframe.
        #expect(
            flashes.count >= Self.seconds - 4 && beeps.count >= Self.seconds - 2, "\(flashes), \(beeps), seed \(seed)")
        var offsets: [Int] = []
        for flash in flashes {
            guard let beep = beeps.min(by: { abs($0 - flash) < abs($1 - flash) }), abs(beep - flash) < 500 else {
                continue
            }
            offsets.append(beep - flash)
        }
        print("lip sync: beeps are \(offsets) ms after their flashes")
        #expect(offsets.count >= Self.seconds - 4 && offsets.allSatisfy { abs($0) <= 40 }, "\(offsets), seed \(seed)")
    }

    private static func time(_ seconds: Double) -> MediaTime { MediaTime(nanoseconds: Int64(seconds * 1e9)) }

    private static func timestamp(isVideo: Bool, _ sent: Double) -> UInt32 {
        UInt32(truncatingIfNeeded: Int64((sent * (isVideo ? 90_000 * clock : 48_000 * card)).rounded()))
    }

    /// Returns the packets of the encoded pattern. Two of a hundred are lost: video is retransmitted 100 ms later, audio is not.
    private static func packets(_ random: inout SeededGenerator) throws -> [Packet] {
        let flash = "color=black:s=160x120:r=25:d=\(seconds),drawbox=color=white:t=fill:enable='lt(mod(t,1),0.04)'"
        let ivf = try FFmpegTools.run(
            "ffmpeg",
            ["-f", "lavfi", "-i", flash, "-c:v", "libvpx", "-deadline", "realtime", "-g", "50", "-f", "ivf", "-"])
        let beep = "aevalsrc=exprs='if(lt(mod(t,1),0.2),0.5*sin(2*PI*1000*t),0)':s=48000:d=\(seconds)"
        let ogg = try FFmpegTools.run(
            "ffmpeg", ["-f", "lavfi", "-i", beep, "-c:a", "libopus", "-ac", "2", "-f", "ogg", "-"])
        var packets: [Packet] = []
        var number: Int64 = 0
        func add(_ isVideo: Bool, _ sent: Double, _ marker: Bool, _ payload: [UInt8]) {
            number += 1
            let isLost = Int.random(in: 0..<50, using: &random) == 0
            if isLost && !isVideo || outage.contains(sent) { return }
            let arrival = sent + 0.02 + Double.random(in: 0...0.03, using: &random) + (isLost ? 0.1 : 0)
            packets.append(
                Packet(
                    isVideo: isVideo, sent: sent, arrival: arrival,
                    packet: PacketOrder.Packet(
                        number: number, timestamp: timestamp(isVideo: isVideo, sent), marker: marker, payload: payload))
            )
        }
        var packetizer = VP8Packetizer(pictureID: 1)
        let film = try ivf.withUnsafeBytes { try IVFFile($0) }
        for (index, frame) in film.frames.enumerated() {
            Array(ivf[frame.range]).withUnsafeBytes {
                packetizer.cut($0) { payload, marker in add(true, Double(index) / 25, marker, Array(payload)) }
            }
        }
        number = 0
        let sound = try ogg.withUnsafeBytes { try OpusFile($0) }
        for packet in sound.packets {
            add(false, Double(packet.time) / 48_000, true, Array(sound.bytes[packet.range]))
        }
        return packets
    }

    private static func record(_ packets: [Packet], _ random: inout SeededGenerator) throws -> [UInt8] {
        var recorder = MediaRecorder(hasAudio: true, hasVideo: true)
        _ = recorder.begin(.vp8, isNew: true, now: time(0))
        _ = recorder.begin(nil, isNew: true, now: time(0))
        var file = try MemoryFile()
        var starts = 0
        func write() {
            for output in recorder.takeOutputs() {
                switch output {
                case .begin: starts += 1
                case .block(let block): file.write(block)
                case .end: file.finish()
                case .requestKeyframe, .size, .lost: break
                }
            }
        }
        var next = 0
        for step in 0..<Self.seconds * 100 + 50 {
            let now = Double(step) / 100
            while next < packets.count, packets[next].arrival <= now {
                var packet = packets[next].packet
                packet.arrival = time(packets[next].arrival)
                recorder.take(isVideo: packets[next].isVideo, packet, now: time(now))
                next += 1
            }
            if step % 100 == 50 { report(now, isVideo: true, &recorder, &random) }
            if step % 500 == 70 { report(now, isVideo: false, &recorder, &random) }
            if step % 2 == 0 { recorder.tick(now: time(now)) }
            write()
        }
        recorder.finish(now: time(Double(Self.seconds) + 0.5))
        write()
        #expect(starts == 1)
        return file.bytes
    }

    private static func report(
        _ sent: Double, isVideo: Bool, _ recorder: inout MediaRecorder, _ random: inout SeededGenerator
    ) {
        let ntp = NTPTime(0xe000_0000_0000_0000) + MediaInterval(nanoseconds: Int64(sent * clock * 1e9))
        recorder.report(
            isVideo: isVideo, ntp: ntp, timestamp: timestamp(isVideo: isVideo, sent),
            arrival: time(sent + 0.02 + Double.random(in: 0...0.03, using: &random)))
    }

    /// Returns the beginnings of the flashes in milliseconds.
    private static func flashes(_ path: String) throws -> [Int] {
        let filter = "scale=1:1,format=gray,fps=1000:start_time=0"
        let gray = try FFmpegTools.run("ffmpeg", ["-i", path, "-an", "-vf", filter, "-f", "rawvideo", "-"])
        return gray.indices.filter { $0 > 0 && gray[$0] > 128 && gray[$0 - 1] <= 128 }
    }

    /// Returns the beginnings of the beeps in milliseconds. Lost packets interrupt beeps, so a beginning needs 300 ms of silence.
    private static func beeps(_ path: String) throws -> [Int] {
        let filter = "aresample=48000:async=1:first_pts=0"
        let raw = try FFmpegTools.run("ffmpeg", ["-i", path, "-vn", "-af", filter, "-ac", "1", "-f", "s16le", "-"])
        var (found, loud): ([Int], Int) = ([], -48_000)
        for sample in 0..<raw.count / 2 {
            let value = Int16(bitPattern: UInt16(raw[2 * sample]) | UInt16(raw[2 * sample + 1]) << 8)
            guard abs(Int(value)) > 4_000 else { continue }
            if sample - loud > 14_400 { found.append(sample / 48) }
            loud = sample
        }
        return found
    }
}
