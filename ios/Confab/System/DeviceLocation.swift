import AppModel
import CoreLocation
import Foundation

/// The location of the device, as roughly as the server keeps it. It is created on the main thread, which Core Location then
/// calls.
@MainActor final class DeviceLocation: NSObject, Locating {
    private let manager = CLLocationManager()
    private var changed: (@MainActor (DevicePosition?) -> Void)?
    private var asked: (@MainActor (PermissionStatus) -> Void)?

    override init() {
        super.init()
        manager.desiredAccuracy = kCLLocationAccuracyKilometer
        manager.distanceFilter = DevicePosition.reportedDistance
        manager.delegate = self
    }

    var permission: PermissionStatus {
        switch manager.authorizationStatus {
        case .notDetermined: .notAsked
        case .restricted: .restricted
        case .denied: .refused
        case .authorizedAlways, .authorizedWhenInUse: .allowed
        @unknown default: .refused
        }
    }

    func requestPermission(_ completion: @escaping @MainActor (PermissionStatus) -> Void) {
        guard permission == .notAsked else { return completion(permission) }
        asked = completion
        manager.requestWhenInUseAuthorization()
    }

    func start(_ changed: @escaping @MainActor (DevicePosition?) -> Void) {
        self.changed = changed
        manager.startUpdatingLocation()
    }

    func stop() {
        changed = nil
        manager.stopUpdatingLocation()
    }
}

extension DeviceLocation: @preconcurrency CLLocationManagerDelegate {
    // Also called once when the delegate is set, before the person decided.
    func locationManagerDidChangeAuthorization(_ manager: CLLocationManager) {
        guard permission != .notAsked else { return }
        asked?(permission)
        asked = nil
    }

    func locationManager(_ manager: CLLocationManager, didUpdateLocations locations: [CLLocation]) {
        guard let location = locations.last else { return }
        let place = location.coordinate
        let position = DevicePosition(
            latitude: place.latitude, longitude: place.longitude, measured: location.horizontalAccuracy)
        if let position { changed?(position) }
    }

    func locationManager(_ manager: CLLocationManager, didFailWithError error: any Error) { changed?(nil) }
}
