import AppModel
import Foundation
import SwiftUI
import UIKit

/// The first screen, for choosing a server.
struct WelcomeView: View {
    @Bindable var model: WelcomeModel

    var body: some View {
        NavigationStack {
            Form {
                Section {
                    Text(model.sloganText)
                    TextField("Server", text: $model.address)
                        .keyboardType(.URL)
                        .textInputAutocapitalization(.never)
                        .autocorrectionDisabled()
                        .submitLabel(.go)
                        .onSubmit { model.submit() }
                    ModelText(model.statusText)
                    if model.isChecking { ProgressView() }
                    if model.offersSettings { SettingsButton() }
                    if model.canScan {
                        Button("Scan QR code", systemImage: "qrcode.viewfinder") { model.scan() }
                            .disabled(!model.canStartScan)
                    }
                    Button("Continue") { model.submit() }.disabled(!model.canContinue)
                    if model.canGoBack { Button("Cancel", role: .cancel) { model.goBack() } }
                } footer: {
                    Text(model.privacyText)
                }
                if !model.recent.isEmpty {
                    Section("Recent servers") {
                        ForEach(model.recent, id: \.self) { url in
                            Button(url.absoluteString) { model.choose(url) }
                                .swipeActions { Button("Forget", role: .destructive) { model.forget(url) } }
                        }
                    }
                }
            }
            .navigationTitle("Confab")
        }
        .sheet(isPresented: $model.isScanning) {
            NavigationStack {
                CodeScanner(found: { model.scanned(oneOf: $0) }, failed: { model.scanFailed() })
                    .ignoresSafeArea()
                    .navigationTitle("Scan QR code")
                    .toolbar {
                        ToolbarItem(placement: .cancellationAction) { Button("Cancel") { model.isScanning = false } }
                    }
            }
        }
    }
}
