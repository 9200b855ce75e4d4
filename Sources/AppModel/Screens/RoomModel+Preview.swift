/// Shows the user's camera before joining.
extension RoomModel {
    /// Opens the devices, after requesting the permissions, and shows the self-view. No one else can see it yet.
    public func preview() {
        guard canPreview else { return }
        isPreviewing = true
        permissions.settle([.camera, .microphone]) { [weak self] in
            // The user may have left the screen while the system showed its prompts.
            guard let self, isPreviewing, !isBusy else { return }
            request(.preview(video: !isCameraOff && permissions.mayShow))
        }
    }

    /// Closes the preview. Also closes the devices, unless the user is in a room or joining one.
    public func closePreview() {
        guard isPreviewing else { return }
        isPreviewing = false
        guard !isBusy else { return }
        own = nil
        request(.closePreview)
    }

    public func switchCamera() { request(.switchCamera) }
}
