import AppModel
import Confab
import Foundation
import WebRTC

/// The media engine on WebRTC's framework.
///
/// ```swift
/// let client = ConfabClient(server: url, media: WebRTCEngine())
/// ```
///
/// This folder is self-contained: copy it into your own application. Of Confab's modules, it imports only Confab,
/// ConfabUI and AppModel.
final class WebRTCEngine: MediaEngine {
    /// One factory for the process, because each has its own threads.
    static let factory: RTCPeerConnectionFactory = {
        RTCInitializeSSL()
        let encoders = RTCDefaultVideoEncoderFactory()
        let codecs = RTCDefaultVideoEncoderFactory.supportedCodecs()
        if let first = EngineRules.preferredCodec(among: codecs.map(\.name)) { encoders.preferredCodec = codecs[first] }
        return RTCPeerConnectionFactory(
            encoderFactory: encoders, decoderFactory: RTCDefaultVideoDecoderFactory())
    }()

    /// The renderer for sources that are created after it was set. It is locked, because WebRTC's threads read it.
    static let renderer = Locked(DeviceSettings().renderer)

    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer {
        let observer = PeerObserver()
        let none = RTCMediaConstraints(mandatoryConstraints: nil, optionalConstraints: nil)
        let connection = Self.factory.peerConnection(
            with: configuration.native, constraints: none, delegate: observer)
        guard let connection else { throw .tooManyConnections }
        return WebRTCPeer(connection: connection, observer: observer)
    }

    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        switch request {
        case .camera(let preset, let withMicrophone):
            let source = Self.factory.videoSource()
            let camera = CameraCapture(source: source)
            try await camera.start(CameraRequest(preset))
            return media(source, camera, withMicrophone: withMicrophone)
        case .microphone:
            return WebRTCMedia(audio: Self.microphone(), video: nil, capture: nil)
        case .screen:
            let source = Self.factory.videoSource(forScreenCast: true)
            let screen = ScreenCapture(source: source)
            try await screen.start()
            return media(source, screen, withMicrophone: false)
        case .file: throw .noFiles
        }
    }

    func media(
        _ source: RTCVideoSource, _ capture: any VideoCapture, withMicrophone: Bool
    ) -> WebRTCMedia {
        let video = Self.factory.videoTrack(with: source, trackId: UUID().uuidString)
        return WebRTCMedia(audio: withMicrophone ? Self.microphone() : nil, video: video, capture: capture)
    }

    private static func microphone() -> RTCAudioTrack {
        let source = factory.audioSource(with: nil)
        return factory.audioTrack(with: source, trackId: UUID().uuidString)
    }
}

extension WebRTCEngine: RenderingEngine {
    func use(_ renderer: RendererChoice) { Self.renderer.value = renderer }
}
