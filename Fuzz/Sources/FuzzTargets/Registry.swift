extension FuzzTarget {
    /// Every target, in the order in which they run. To add one, add a file and a line here.
    public static let all: [FuzzTarget] = [
        .json,
        .clientMessages,
        .serverMessages,
        .tokens,
        .signedTokens,
        .sessionIDs,
        .configuration,
        .addresses,
        .forwardedHeaders,
        .webSocketFrames,
        .socketIOPackets,
        .socketIOPayloads,
        .socketIOForms,
        .link,
        .hub,
    ]
}
