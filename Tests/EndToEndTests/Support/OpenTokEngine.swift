import Confab
import ConfabHeadless
import Foundation
import OpenTokCompat
import Synchronization

/// The engine of a device with two cameras and a screen. Its camera and its screen show the same film.
final class OpenTokEngine: MediaEngine {
    private let engine: FileEngine
    private let film: URL
    private let request: AsyncStream<Void>.Continuation
    /// An element for each time that a receiver needs a frame of the capturer.
    let requests: AsyncStream<Void>

    init(film: URL) {
        (engine, self.film) = (FileEngine(publishing: film), film)
        (requests, request) = AsyncStream.makeStream()
    }

    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer {
        try await engine.makePeer(configuration)
    }

    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        switch request {
        // A device with cameras that can be changed has no film.
        case .camera(let preset, let withMicrophone): EncodedMedia(audio: withMicrophone, video: preset.size)
        case .screen: try await engine.capture(.file(film))
        default: try await engine.capture(request)
        }
    }
}

extension OpenTokEngine: OTFrameEngine {
    func makeFrameMedia(isScreen: Bool, withMicrophone: Bool) async throws(ConfabError) -> any OTFrameMedia {
        let media = EncodedMedia(audio: withMicrophone, video: Frames.size)
        Task { [request] in for await _ in media.keyframeRequests { request.yield() } }
        return media
    }
}

extension EncodedMedia: OTSwitchableCamera {
    static let cameras = Mutex<[OTCameraPosition]>([])

    public func use(_ position: OTCameraPosition) async throws(ConfabError) {
        Self.cameras.withLock { $0.append(position) }
    }
}

extension EncodedMedia: OTFrameMedia {
    /// The only plane of a frame is the frame as it is sent.
    public func send(_ frame: OTVideoFrame) {
        guard let start = frame.planes?.pointer(at: 0), let count = frame.format?.bytesPerRow.firstObject as? NSNumber
        else { return }
        let bytes = [UInt8](UnsafeRawBufferPointer(start: start, count: count.intValue))
        send(EncodedFrame(.vp8, bytes, at: frame.timestamp, size: Frames.size))
    }

    public func send(_ image: OTImageBuffer, orientation: OTVideoOrientation, at time: OTFrameTime) -> Bool { false }
}

/// A capturer whose frames are encoded already. It writes down how it is used.
final class FrameCapturer: NSObject, OTVideoCapture {
    weak var videoCaptureConsumer: (any OTVideoCaptureConsumer)?
    var videoContentHint = OTVideoContentHint.none
    private(set) var calls: [String] = []
    private var number = 0

    func capture() {
        var bytes = Frames.video(0).bytes
        let frame = OTVideoFrame(format: OTVideoFormat(argbWithWidth: 0, height: 1))
        frame.format?.bytesPerRow = NSMutableArray(array: [NSNumber(value: bytes.count)])
        frame.timestamp = .milliseconds(40 * number)
        number += 1
        bytes.withUnsafeMutableBytes { bytes in
            frame.planes?.addPointer(bytes.baseAddress)
            videoCaptureConsumer?.consumeFrame(frame)
        }
    }

    func initCapture() { calls.append("init") }
    func releaseCapture() { calls.append("release") }
    func start() -> Int32 {
        calls.append("start")
        return 0
    }
    func stop() -> Int32 {
        calls.append("stop")
        return 0
    }
    func isCaptureStarted() -> Bool { calls.last == "start" }
    func captureSettings(_ videoFormat: OTVideoFormat) -> Int32 {
        calls.append("settings")
        return 0
    }
}
