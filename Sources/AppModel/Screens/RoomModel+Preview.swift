/// The own picture before joining.
extension RoomModel {
    /// Shows the own picture, which nobody else sees yet.
    public func preview() {
        guard canPreview else { return }
        isPreviewing = true
        permissions.settle([.camera, .microphone]) { [weak self] in
            // The person may have left the screen while the system asked.
            guard let self, isPreviewing, !isBusy else { return }
            request(.preview(video: !isCameraOff && permissions.mayShow))
        }
    }

    /// The camera's light goes out, unless the room is joined.
    public func closePreview() {
        guard isPreviewing else { return }
        isPreviewing = false
        guard !isBusy else { return }
        own = nil
        request(.closePreview)
    }

    public func switchCamera() { request(.switchCamera) }
}
