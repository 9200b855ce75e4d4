import Signaling
import Wire

/// A socket as the runner sees it. Used only on the runner's event loop.
protocol RunnerSocket: AnyObject {
    /// Queues one message. `flush` sends it.
    func write(_ bytes: [UInt8])
    func flush()
    func close(_ code: CloseCode, _ reason: String)
    /// Closes without a close frame, so that the client resumes.
    func drop()
    /// Delivers the reply to a request. Only WHIP and WHEP resources make requests.
    func reply(_ reply: ResourceReply)
}

extension RunnerSocket {
    func reply(_ reply: ResourceReply) {}
    // Only native clients have data that waits for storage.
    func drop() {}
}

/// A reader that pauses while storage is far behind.
protocol PausedReader: AnyObject {
    func resumeReading()
}
