import Foundation

/// Decides which of Apple's push services issued this device's token: the sandbox if the app was signed for
/// development, regardless of the build configuration.
enum PushService {
    static var isSandbox: Bool {
        let url = Bundle.main.url(forResource: "embedded", withExtension: "mobileprovision")
        #if targetEnvironment(simulator)
        let isSimulator = true
        #else
        let isSimulator = false
        #endif
        return isSandbox(profile: url.flatMap { try? Data(contentsOf: $0) }, isSimulator: isSimulator)
    }

    /// Returns whether the app was signed for the sandbox, according to its provisioning profile. Without a profile,
    /// only an app in a simulator was. Returns false if the profile cannot be read.
    ///
    /// - Parameter profile: the app's provisioning profile, which is a property list inside a signature. App Store
    /// apps and apps in a simulator have none.
    static func isSandbox(profile: Data?, isSimulator: Bool) -> Bool {
        guard let profile else { return isSimulator }
        guard let start = profile.range(of: Data("<?xml".utf8))?.lowerBound,
            let end = profile.range(of: Data("</plist>".utf8), in: start..<profile.endIndex)?.upperBound,
            let list = try? PropertyListSerialization.propertyList(from: profile[start..<end], format: nil),
            let entitlements = (list as? [String: Any])?["Entitlements"] as? [String: Any]
        else { return false }
        return entitlements["aps-environment"] as? String == "development"
    }
}
