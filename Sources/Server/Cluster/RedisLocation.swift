import Redis

// Apart from the settings, because the fuzz targets build them without NIO.
extension ConfabConfiguration.Cluster {
    /// Where Redis is.
    ///
    /// - Throws: ``RedisError/Code/invalidConfiguration`` if a URL is invalid, which the settings' format excludes.
    func redisLocation() throws -> RedisConfiguration.Location {
        let urls = try redis.map { try RedisURL($0.revealed) }
        guard let sentinelPrimary else { return .servers(urls) }
        return .sentinels(
            urls, primaryName: sentinelPrimary, credentials: sentinelCredentials.flatMap(Self.credentials),
            isSecure: sentinelTLS)
    }
}
