// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// This is a separate package, so that it does not become part of a user's build. The targets that it measures directly are
// symbolic links in `Sources`. `run` builds and starts the servers.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    ],
    targets: [
        .target(name: "Wire", swiftSettings: settings),
        .target(name: "Cluster", swiftSettings: settings),
        .target(
            name: "Signaling",
            dependencies: [
                "Cluster", "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "Bench",
            dependencies: [
                "Signaling", "Wire",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "Redis",
            dependencies: [
                "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: settings
        ),
        // `Server` in it links the files with which a node uses Redis, so that their scripts and entries are measured.
        .executableTarget(
            name: "RedisLoad",
            dependencies: [
                "Cluster", "Redis", "Signaling", "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        // Contains only `SeededGenerator`. The whole target would need OpenSSL.
        .target(name: "TestSupport", swiftSettings: settings),
        // Its folder `Simulation` is a link to the simulated population in the tests of `Signaling`.
        .executableTarget(
            name: "Population", dependencies: ["Cluster", "Signaling", "TestSupport", "Wire"], swiftSettings: settings),
    ]
)
