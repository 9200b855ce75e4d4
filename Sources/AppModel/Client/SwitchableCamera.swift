import Confab

/// Media with a camera that can be switched while it is published. The engine of an app conforms to it.
public protocol SwitchableCamera: LocalMedia {
    /// Uses the next camera: front, back.
    func switchCamera() async throws(ConfabError)
    /// Captures another size or rate from now on.
    func change(to request: CameraRequest) async throws(ConfabError)
}
