// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// As in the server's package: release builds do not check for overlapping accesses.
let packetSettings =
    settings + [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]

// A router and its clients in one process, without sockets, so that a simulator of the processor can count the router's
// instructions. The simulated clients are those of the router's tests.
let package = Package(
    name: "router-loop",
    platforms: [.macOS(.v15)],
    targets: [
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl"),
        .target(name: "CAllocations"),
        .target(name: "RTC", dependencies: ["COpenSSL"], swiftSettings: packetSettings),
        .target(name: "SFU", dependencies: ["RTC"], swiftSettings: packetSettings),
        // The vendor tokens need swift-crypto, which this package does not fetch.
        .target(
            name: "TestSupport", dependencies: ["RTC"], exclude: ["VendorTokens.swift"], swiftSettings: settings),
        .executableTarget(
            name: "RouterLoop", dependencies: ["CAllocations", "RTC", "SFU", "TestSupport"], swiftSettings: settings,
            linkerSettings: [.linkedLibrary("Testing"), .linkedLibrary("m")]),
    ]
)
