// Expect: crosses into main actor-isolated code and can cause data races
import Foundation
import WebRTC

@MainActor final class Renderer: NSObject {}

extension Renderer: RTCVideoRenderer {
    func setSize(_ size: CGSize) {}
    func renderFrame(_ frame: RTCVideoFrame?) {}
}
