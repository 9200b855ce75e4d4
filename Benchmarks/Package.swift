// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nothing here becomes part of a user's build.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        // Named: otherwise the name would be that of the folder the repository was cloned into.
        .package(name: "confab", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    ],
    targets: [
        .executableTarget(
            name: "Bench",
            dependencies: [
                .product(name: "Measured", package: "confab"),
                // Built with it, and started by `run`.
                .product(name: "confab", package: "confab"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
            ]
        )
    ]
)
