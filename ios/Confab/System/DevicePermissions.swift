import AVFoundation
import AppModel

/// Reads and requests the permissions to use the camera, the microphone and the location.
@MainActor final class DevicePermissions: Permissions {
    private let location: DeviceLocation

    init(location: DeviceLocation) { self.location = location }

    func status(of permission: Permission) -> PermissionStatus {
        switch permission {
        case .camera: status(of: .video)
        case .microphone: status(of: .audio)
        case .location: location.permission
        }
    }

    func request(_ permission: Permission, completion: @escaping @MainActor (PermissionStatus) -> Void) {
        switch permission {
        case .camera: request(.video, completion)
        case .microphone: request(.audio, completion)
        case .location: location.requestPermission(completion)
        }
    }

    private func status(of media: AVMediaType) -> PermissionStatus {
        let status: PermissionStatus =
            switch AVCaptureDevice.authorizationStatus(for: media) {
            case .notDetermined: .notAsked
            case .restricted: .restricted
            case .denied: .refused
            case .authorized: .allowed
            @unknown default: .refused
            }
        return status.onDevice(AVCaptureDevice.default(for: media) != nil)
    }

    private func request(_ media: AVMediaType, _ completion: @escaping @MainActor (PermissionStatus) -> Void) {
        AVCaptureDevice.requestAccess(for: media) { @Sendable [weak self] _ in
            Task { @MainActor in
                if let self { completion(self.status(of: media)) }
            }
        }
    }
}
