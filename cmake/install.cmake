# What `cmake --install` puts where: library, headers, pkg-config file, CMake package, routes, documents. Everything finds
# its parts relative to itself, so that an installed tree may be moved.
include(CMakePackageConfigHelpers)

target_include_directories(fp8route INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS fp8route EXPORT fp8route LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/fp8route DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix ${pkgconfig_to_prefix})
configure_file(cmake/fp8route.pc.in fp8route.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fp8route.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/fp8route)
install(EXPORT fp8route NAMESPACE fp8route:: FILE fp8route-config.cmake DESTINATION ${package_directory})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/fp8route-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fp8route-config-version.cmake DESTINATION ${package_directory})

install(DIRECTORY routes/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fp8route/routes OPTIONAL FILES_MATCHING PATTERN "*.routes")
install(DIRECTORY shapes/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fp8route/shapes OPTIONAL FILES_MATCHING PATTERN "*.txt")
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md" PATTERN generate EXCLUDE)
# Of the measurements, which are many megabytes, those that the documents link to. What they only name is in the source tree.
file(GLOB documents CONFIGURE_DEPENDS *.md docs/*.md routes/*.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${documents})
foreach(document IN LISTS documents)
    file(READ ${document} text)
    string(REPLACE "](" "->(" text "${text}") # a list of CMake's may hold no bracket
    string(REGEX MATCHALL "->[(][./]*bench/results/[A-Za-z0-9._-]+[)#]" links "${text}")
    list(TRANSFORM links REPLACE "^->[(][./]*|[)#]$" "")
    list(APPEND linked_results ${links})
endforeach()
list(REMOVE_DUPLICATES linked_results)
install(FILES ${linked_results} DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench/results)
install(FILES routes/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/routes)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples FILES_MATCHING PATTERN "*.c" PATTERN "*.py"
    PATTERN __pycache__ EXCLUDE)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET fp8route_program)
    install(TARGETS fp8route_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
